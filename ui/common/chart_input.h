// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointF>
#include <optional>

class QCustomPlot;
class QKeyEvent;
class QMouseEvent;
class QWheelEvent;

namespace shardscope::ui {

/// Mouse and keys of a chart, in values of its x axis. Drag selects a range, as on the timeline; Shift or the middle
/// button drags the view; the wheel zooms at the cursor (where the page scrolls: with Ctrl, or once the chart has the
/// focus); double click or Home fits; +, −, ← and → do it by keyboard.
class ChartInput : public QObject
{
    Q_OBJECT
public:
    explicit ChartInput(QCustomPlot *plot);

Q_SIGNALS:
    void viewWanted(double lower, double upper);
    void fitWanted();
    void brushing(double from, double to); ///< while dragged
    void brushed(double lower, double upper);
    void picked(double x);
    void hovered(double x, const QPointF &position);
    void left();

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    bool press(const QMouseEvent *event);
    bool move(const QMouseEvent *event);
    bool release(const QMouseEvent *event);
    bool wheel(QWheelEvent *event);
    bool wheelIsOurs(const QWheelEvent *event) const;
    bool key(const QKeyEvent *event);
    double xAt(const QPointF &position) const;
    void zoom(double center, double factor);
    void pan(double distance);

    enum class Drag { None, Brush, Pan };
    QCustomPlot *m_plot;
    Drag m_drag = Drag::None;
    QPointF m_pressed;
    double m_pressedX = 0;
    bool m_moved = false;
};

} // namespace shardscope::ui
