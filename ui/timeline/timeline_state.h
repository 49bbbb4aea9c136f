// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/hit_test.h"
#include "ui/timeline/span_search.h"

#include <QObject>

namespace shardscope::ui::timeline {

/// What the timeline's widgets share: the snapshot, the part of it in view, what is under the mouse, picked, marked,
/// brushed, found and filtered. Widgets change it by its functions and paint when it says so.
class TimelineState : public QObject
{
    Q_OBJECT
public:
    using QObject::QObject;

    const Snapshot *snapshot() const { return m_snapshot.get(); }
    const std::shared_ptr<const Snapshot> &sharedSnapshot() const { return m_snapshot; }
    /// Keeps what is picked and in view as far as the new snapshot still has it.
    void setSnapshot(std::shared_ptr<const Snapshot> snapshot);
    void clear();

    const TimeAxis &axis() const { return m_axis; }
    void setWidth(double widthPx);
    void setVisible(TimeRange visible);
    void zoomAt(double xPx, double factor);
    void panPixels(double pixels);
    void fit();
    void reveal(TimeRange range);
    /// Keep the end of a live recording in view.
    bool follows() const { return m_follows; }
    void setFollows(bool follows);

    const RowLayout &layout() const { return m_layout; }
    void toggleFold(const Row &row);
    void foldAll(bool folded);

    bool isShown(SpanCategory category) const { return m_shown[static_cast<size_t>(category)]; }
    void setShown(SpanCategory category, bool shown);

    const std::optional<SpanRef> &hovered() const { return m_hovered; }
    void setHovered(std::optional<SpanRef> span);
    const std::optional<SpanRef> &picked() const { return m_picked; }
    void pick(std::optional<SpanRef> span);
    /// The spans of the collective that is hovered, or else picked, on all ranks.
    const std::vector<SpanRef> &links() const { return m_links; }

    const std::optional<TimeRange> &brush() const { return m_brush; }
    void setBrush(std::optional<TimeRange> brush);
    const std::vector<int64_t> &marks() const { return m_marks; }
    /// Sets a mark, or takes away the one that is within three pixels.
    void toggleMark(int64_t timeNs);
    void clearMarks();
    /// Where the mouse is in time; empty: not over the lanes.
    const std::optional<int64_t> &cursorNs() const { return m_cursorNs; }
    void setCursor(std::optional<int64_t> timeNs);

    const std::shared_ptr<const SearchResult> &found() const { return m_found; }
    void setFound(std::shared_ptr<const SearchResult> found);

Q_SIGNALS:
    void viewChanged();       ///< another part is in view
    void contentChanged();    ///< another snapshot, rows or filter
    void decorationChanged(); ///< hover, pick, marks, brush, hits
    void cursorChanged();
    void spanPicked();
    void brushChanged(); ///< by the user here
    void followsChanged(bool follows);

private:
    void updateLinks();
    void afterView(bool byUser);

    std::shared_ptr<const Snapshot> m_snapshot;
    TimeAxis m_axis;
    RowLayout m_layout;
    std::array<bool, kCategories> m_shown{true, true, true, true, true};
    std::optional<SpanRef> m_hovered, m_picked;
    std::vector<SpanRef> m_links;
    std::optional<TimeRange> m_brush;
    std::vector<int64_t> m_marks;
    std::optional<int64_t> m_cursorNs;
    std::shared_ptr<const SearchResult> m_found;
    bool m_follows = false;
};

} // namespace shardscope::ui::timeline
