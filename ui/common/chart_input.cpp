// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_input.h"

#include "ui/common/custom_plot.h"
#include <QApplication>
#include <QScrollArea>
#include <algorithm>
#include <cmath>

namespace shardscope::ui {

static constexpr double kWheelStep = 1.25; ///< zoom of one notch
static constexpr double kKeyPan = 0.15;    ///< of the view

ChartInput::ChartInput(QCustomPlot *plot)
    : QObject(plot)
    , m_plot(plot)
{
    plot->setMouseTracking(true);
    plot->setFocusPolicy(Qt::StrongFocus);
    plot->installEventFilter(this);
}

double ChartInput::xAt(const QPointF &position) const
{
    return m_plot->xAxis->pixelToCoord(position.x());
}

bool ChartInput::eventFilter(QObject *, QEvent *event)
{
    switch (event->type()) {
    case QEvent::MouseButtonPress:
        return press(static_cast<QMouseEvent *>(event));
    case QEvent::MouseMove:
        return move(static_cast<QMouseEvent *>(event));
    case QEvent::MouseButtonRelease:
        return release(static_cast<QMouseEvent *>(event));
    case QEvent::MouseButtonDblClick:
        Q_EMIT fitWanted();
        return true;
    case QEvent::Wheel:
        return wheel(static_cast<QWheelEvent *>(event));
    case QEvent::KeyPress:
        return key(static_cast<QKeyEvent *>(event));
    case QEvent::Leave:
        Q_EMIT left();
        return false;
    default:
        return false;
    }
}

bool ChartInput::press(const QMouseEvent *event)
{
    const bool middle = event->button() == Qt::MiddleButton;
    if (event->button() != Qt::LeftButton && !middle)
        return false;
    m_drag = middle || (event->modifiers() & Qt::ShiftModifier) ? Drag::Pan : Drag::Brush;
    m_pressed = event->position();
    m_pressedX = xAt(m_pressed);
    m_moved = false;
    return true;
}

bool ChartInput::move(const QMouseEvent *event)
{
    const double x = xAt(event->position());
    if (m_drag != Drag::None &&
        (event->position() - m_pressed).manhattanLength() >= QApplication::startDragDistance() / 2)
        m_moved = true;
    if (m_drag == Drag::Pan && m_moved)
        pan(m_pressedX - x);
    else if (m_drag == Drag::Brush && m_moved)
        Q_EMIT brushing(m_pressedX, x);
    Q_EMIT hovered(x, event->position());
    return true;
}

bool ChartInput::release(const QMouseEvent *event)
{
    const Drag drag = std::exchange(m_drag, Drag::None);
    const double x = xAt(event->position());
    if (drag == Drag::Brush && m_moved)
        Q_EMIT brushed(std::min(m_pressedX, x), std::max(m_pressedX, x));
    else if (drag == Drag::Brush)
        Q_EMIT picked(x);
    return drag != Drag::None;
}

/// On a page that scrolls, a wheel that happens to be over a chart is meant for the page.
bool ChartInput::wheelIsOurs(const QWheelEvent *event) const
{
    if (event->modifiers() & (Qt::ControlModifier | Qt::ShiftModifier) || m_plot->hasFocus())
        return true;
    for (const QWidget *widget = m_plot->parentWidget(); widget; widget = widget->parentWidget()) {
        if (qobject_cast<const QScrollArea *>(widget))
            return false;
    }
    return true;
}

bool ChartInput::wheel(QWheelEvent *event)
{
    if (!wheelIsOurs(event)) {
        event->ignore(); // QCustomPlot would take it otherwise
        return true;
    }
    const QCPRange view = m_plot->xAxis->range();
    const QPoint delta = event->angleDelta();
    const bool sideways = std::abs(delta.x()) > std::abs(delta.y()) || (event->modifiers() & Qt::ShiftModifier);
    const double notches = (sideways && delta.x() != 0 ? delta.x() : delta.y()) / 120.0;
    if (sideways)
        pan(-notches * kKeyPan * view.size());
    else
        zoom(xAt(event->position()), std::pow(kWheelStep, -notches));
    return true;
}

bool ChartInput::key(const QKeyEvent *event)
{
    const QCPRange view = m_plot->xAxis->range();
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoom(view.center(), 1 / kWheelStep);
        return true;
    case Qt::Key_Minus:
        zoom(view.center(), kWheelStep);
        return true;
    case Qt::Key_Left:
        pan(-kKeyPan * view.size());
        return true;
    case Qt::Key_Right:
        pan(kKeyPan * view.size());
        return true;
    case Qt::Key_Home:
        Q_EMIT fitWanted();
        return true;
    default:
        return false;
    }
}

void ChartInput::zoom(double center, double factor)
{
    const QCPRange view = m_plot->xAxis->range();
    Q_EMIT viewWanted(center - (center - view.lower) * factor, center + (view.upper - center) * factor);
}

void ChartInput::pan(double distance)
{
    const QCPRange view = m_plot->xAxis->range();
    Q_EMIT viewWanted(view.lower + distance, view.upper + distance);
}

} // namespace shardscope::ui
