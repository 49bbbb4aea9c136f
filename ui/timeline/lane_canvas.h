// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/label_cache.h"
#include "ui/timeline/lane_painter.h"

#include <QAbstractScrollArea>
#include <QElapsedTimer>
#include <optional>

namespace shardscope::ui::timeline {

/// The rows of the timeline: names at the left, spans at the right. Wheel zooms at the cursor, Shift+wheel pans, a drag
/// selects a range, a drag with Shift or the middle button pans, a click picks, a double click fits.
class LaneCanvas : public QAbstractScrollArea
{
    Q_OBJECT
public:
    static constexpr int kHeaderPx = 208; ///< "communication (stream 29)" fits at 9 points

    explicit LaneCanvas(TimelineState &state, QWidget *parent = nullptr);

    /// Of the last paint, spans and texts; for the benchmark and "is it slow?".
    qint64 lastPaintNs() const { return m_lastPaintNs; }
    TimelineState &state() const { return m_state; }
    int lanesWidth() const;
    /// Scrolls up or down so that the span's row is in view.
    void reveal(const SpanRef &span);
    void scrollRows(int rows);
    /// Where a span is drawn, in the viewport's coordinates; empty where its row is folded away.
    QRectF rectOf(const SpanRef &span) const;
    QRect rowRect(const Row &row) const;

protected:
    bool viewportEvent(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;

private:
    enum class Drag { None, Range, Pan };

    void onContentChanged();
    void invalidate();
    void paintLanes(QPainter &painter);
    void paintLabels(QPainter &painter, const std::vector<LabelPlace> &labels);
    void paintHeader(QPainter &painter);
    void paintRowHeader(QPainter &painter, const Row &row);
    void paintDeleted(QPainter &painter);
    void paintDecoration(QPainter &painter);
    void paintLinks(QPainter &painter);
    void outline(QPainter &painter, const SpanRef &span, const QColor &color, double width);
    bool showTip(const QPoint &position, const QPoint &global);
    void hover(const QPointF &position);
    std::optional<Hit> hitAt(const QPointF &position) const;
    const Row *rowAtPosition(const QPointF &position) const;
    double axisX(double viewportX) const { return viewportX - kHeaderPx; }
    int scrollY() const;

    TimelineState &m_state;
    LabelCache m_labels;
    QPixmap m_lanes; ///< spans and texts, kept while only what is over them changes
    bool m_lanesValid = false;
    QSize m_lanesSize; ///< that they were painted for, in logical pixels
    double m_lanesScale = 1;
    qint64 m_lastPaintNs = 0;
    Drag m_drag = Drag::None;
    bool m_pressed = false;
    bool m_fitted = false; ///< the release after a double click picks nothing
    QPointF m_pressPosition;
    int64_t m_pressNs = 0;
    double m_lastX = 0;
};

} // namespace shardscope::ui::timeline
