// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/colors.h"
#include "ui/timeline/coverage.h"
#include "ui/timeline/raster.h"
#include "ui/timeline/timeline_state.h"

namespace shardscope::ui::timeline {

/// A rectangle wide enough for a text, in logical pixels of the lanes' area.
struct LabelPlace
{
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    int32_t name = kNone;
    int32_t unit = kNone;
    std::optional<Operation> operation; ///< of a collective's own span: its kernel's name tells people less
    QRgb fill = 0;
    double hatched = 0; ///< how much of the width is striped: text there needs a plate behind it
};

/// Paints the spans of all rows in view into an image of device pixels, and tells where texts can stand. Every span
/// leaves its trace: from three pixels on as a rectangle, else as its part of a column's stacked coverage. Knows
/// nothing of widgets; holds no state between two calls.
class LanePainter
{
public:
    static constexpr double kLabelPx = 40;
    static constexpr size_t kMostLabels = 2000;

    struct View
    {
        QSize size; ///< logical
        int scrollY = 0;
        double scale = 1; ///< device pixels a logical one
    };

    LanePainter(const TimelineState &state, const Colors &colors, const View &view);

    QImage paint();
    /// After paint(): the widest kMostLabels.
    std::vector<LabelPlace> takeLabels();

    /// A span's colour: by category; in phase lanes computation by its phase.
    static QColor colorOf(const Colors &colors, SpanCategory category, std::optional<Phase> phase, LaneKind lane);

private:
    struct Track
    {
        const SpanTrack &spans;
        const RankTimeline &rank;
        uint32_t rankIndex;
        LaneKind kind;
        int top, bottom; ///< device pixels; of the spans themselves
        bool underlines; ///< room for the mark of exposed communication below
        bool labels;
    };

    void paintGrid();
    void paintRow(const Row &row);
    void paintTrack(const Track &track);
    void paintCoverage(const Track &track, const std::vector<Column> &columns);
    /// A column of a phase lane has the colour of its longest span's phase.
    QColor phaseColorOf(const Track &track, int column) const;
    void paintRectangles(const Track &track, const std::vector<Column> &columns);
    void paintRectangle(const Track &track, SpanPosition p, const std::vector<Column> &columns);
    void paintExposed(const Track &track, const std::vector<Column> &columns);
    const std::vector<Column> &exclusiveOf(uint32_t rank);
    QRgb rgb(const Track &track, const SpanChunk &chunk, uint32_t index) const;
    double deviceX(int64_t timeNs) const;

    const TimelineState &m_state;
    const Snapshot &m_snapshot;
    const Colors &m_colors;
    View m_view;
    TimeRange m_range;
    QImage m_image;
    Raster m_raster;
    double m_nsPerColumn;
    std::vector<std::vector<Column>> m_exclusive; ///< by rank, made when first asked for
    std::vector<LabelPlace> m_labels;
};

} // namespace shardscope::ui::timeline
