// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_state.h"

#include <QPixmap>
#include <QWidget>

namespace shardscope::ui::timeline {

/// The whole recording in one strip: how busy all ranks were, with the part in view, marks, brush and hits on it. A
/// click or drag moves the view; a drag at its edges makes it wider or narrower.
class DensityStrip : public QWidget
{
    Q_OBJECT
public:
    static constexpr int kHeightPx = 44;

    explicit DensityStrip(TimelineState &state, QWidget *parent = nullptr);
    QSize sizeHint() const override { return {400, kHeightPx}; }

protected:
    void paintEvent(QPaintEvent *event) override;
    void changeEvent(QEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;

private:
    enum class Drag { None, Window, LeftEdge, RightEdge };

    void invalidate();
    QImage paintDensity() const;
    void paintDeleted(QPainter &painter) const;
    void paintHits(QPainter &painter) const;
    void paintWindow(QPainter &painter) const;
    QRectF windowRect() const;
    double xOf(int64_t timeNs) const;
    int64_t timeAt(double x) const;
    Drag dragAt(double x) const;
    int left() const;
    int bandWidth() const;

    TimelineState &m_state;
    QPixmap m_density;
    bool m_valid = false;
    QSize m_paintedSize; ///< that the picture was painted for, in logical pixels
    double m_paintedScale = 1;
    Drag m_drag = Drag::None;
    double m_lastX = 0;
};

} // namespace shardscope::ui::timeline
