// SPDX-License-Identifier: GPL-3.0-or-later
// Geometry, mouse and wheel of the canvas; its painting is in lane_canvas_paint.cpp.
#include "ui/timeline/lane_canvas.h"

#include "ui/timeline/span_details.h"

#include <QApplication>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <cmath>

namespace shardscope::ui::timeline {

namespace {

QFont smaller(QFont font)
{
    if (font.pointSizeF() > 0)
        font.setPointSizeF(font.pointSizeF() * 0.9);
    return font;
}

} // namespace

LaneCanvas::LaneCanvas(TimelineState &state, QWidget *parent)
    : QAbstractScrollArea(parent)
    , m_state(state)
    , m_labels(smaller(font()))
{
    setObjectName(QStringLiteral("lanes"));
    setAccessibleName(tr("Lanes of all ranks"));
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
    setFocusPolicy(Qt::StrongFocus);
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    connect(&state, &TimelineState::viewChanged, this, &LaneCanvas::invalidate);
    connect(&state, &TimelineState::contentChanged, this, &LaneCanvas::onContentChanged);
    connect(&state, &TimelineState::decorationChanged, viewport(), qOverload<>(&QWidget::update));
    connect(&state, &TimelineState::cursorChanged, viewport(), qOverload<>(&QWidget::update));
}

int LaneCanvas::lanesWidth() const
{
    return std::max(1, viewport()->width() - kHeaderPx);
}

int LaneCanvas::scrollY() const
{
    return verticalScrollBar()->value();
}

void LaneCanvas::invalidate()
{
    m_lanesValid = false;
    viewport()->update();
}

void LaneCanvas::onContentChanged()
{
    const int page = viewport()->height();
    verticalScrollBar()->setRange(0, std::max(0, m_state.layout().height() - page));
    verticalScrollBar()->setPageStep(page);
    verticalScrollBar()->setSingleStep(RowLayout::kTrackHeight);
    invalidate();
}

void LaneCanvas::resizeEvent(QResizeEvent *)
{
    m_state.setWidth(lanesWidth());
    onContentChanged();
}

void LaneCanvas::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        m_labels = LabelCache(smaller(font()));
        invalidate();
    }
    QAbstractScrollArea::changeEvent(event);
}

void LaneCanvas::scrollContentsBy(int, int)
{
    invalidate();
}

void LaneCanvas::scrollRows(int rows)
{
    verticalScrollBar()->setValue(scrollY() + rows * RowLayout::kTrackHeight);
}

QRect LaneCanvas::rowRect(const Row &row) const
{
    return {0, row.y - scrollY(), viewport()->width(), row.height};
}

QRectF LaneCanvas::rectOf(const SpanRef &span) const
{
    const SpanTrack &track = m_state.snapshot()->track(span);
    const SpanChunk &chunk = track.chunk(span.position);
    for (const Row &row : m_state.layout().rows()) {
        if (row.rank != span.rank || (row.kind == Row::Kind::Lane ? row.lane != span.lane : !row.folded))
            continue;
        // Deep in a zoom a span's ends can be millions of pixels away, which no painter takes well.
        constexpr double kFarPx = 50'000;
        const auto near = [&](int64_t timeNs) { return std::clamp(m_state.axis().xOf(timeNs), -kFarPx, kFarPx); };
        const double left = kHeaderPx + near(chunk.startNs(span.position.index));
        const double right = kHeaderPx + near(chunk.endNs(span.position.index));
        const double top = row.y - scrollY() + (row.kind == Row::Kind::Lane ? span.track * row.trackHeight : 3);
        const double height = row.trackHeight >= 12 ? row.trackHeight - 4 : row.trackHeight;
        return {left, top, std::max(1.0, right - left), height};
    }
    return {};
}

void LaneCanvas::reveal(const SpanRef &span)
{
    const QRectF rect = rectOf(span);
    if (rect.isEmpty())
        return;
    if (rect.top() < 0 || rect.bottom() > viewport()->height())
        verticalScrollBar()->setValue(scrollY() + static_cast<int>(rect.center().y()) - viewport()->height() / 2);
}

const Row *LaneCanvas::rowAtPosition(const QPointF &position) const
{
    const int index = m_state.layout().rowAt(static_cast<int>(std::floor(position.y())) + scrollY());
    return index < 0 ? nullptr : &m_state.layout().rows()[static_cast<size_t>(index)];
}

std::optional<Hit> LaneCanvas::hitAt(const QPointF &position) const
{
    if (!m_state.snapshot() || position.x() < kHeaderPx)
        return std::nullopt;
    return hitTest(*m_state.snapshot(), m_state.layout(), m_state.axis(), axisX(position.x()),
                   static_cast<int>(std::floor(position.y())) + scrollY());
}

void LaneCanvas::mousePressEvent(QMouseEvent *event)
{
    if (!m_state.snapshot())
        return;
    const QPointF position = event->position();
    if (position.x() < kHeaderPx) {
        const Row *row = rowAtPosition(position);
        if (row && event->button() == Qt::LeftButton)
            m_state.toggleFold(*row);
        return;
    }
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return;
    m_pressed = true;
    m_drag = event->button() == Qt::MiddleButton || event->modifiers() & Qt::ShiftModifier ? Drag::Pan : Drag::None;
    m_pressPosition = position;
    m_pressNs = m_state.axis().timeAt(axisX(position.x()));
    m_lastX = position.x();
}

void LaneCanvas::mouseMoveEvent(QMouseEvent *event)
{
    const QPointF position = event->position();
    if (m_drag == Drag::Pan) {
        m_state.panPixels(m_lastX - position.x());
        m_lastX = position.x();
        return;
    }
    if (m_pressed && m_drag == Drag::None &&
        std::abs(position.x() - m_pressPosition.x()) >= QApplication::startDragDistance())
        m_drag = Drag::Range;
    if (m_drag == Drag::Range) {
        const double x = std::clamp(axisX(position.x()), 0.0, static_cast<double>(lanesWidth()));
        const int64_t nowNs = m_state.axis().timeAt(x);
        m_state.setBrush(TimeRange{std::min(m_pressNs, nowNs), std::max(m_pressNs, nowNs)});
    }
    hover(position);
}

void LaneCanvas::mouseReleaseEvent(QMouseEvent *event)
{
    const bool click = m_pressed && m_drag == Drag::None && !m_fitted;
    m_pressed = false;
    m_fitted = false;
    m_drag = Drag::None;
    if (!click || event->button() != Qt::LeftButton)
        return;
    const auto hit = hitAt(event->position());
    m_state.pick(hit ? std::optional(hit->span) : std::nullopt);
}

void LaneCanvas::mouseDoubleClickEvent(QMouseEvent *event)
{
    if (!m_state.snapshot() || event->button() != Qt::LeftButton || event->position().x() < kHeaderPx)
        return;
    m_fitted = true;
    const auto hit = hitAt(event->position());
    if (!hit) {
        m_state.fit();
        return;
    }
    const SpanRecord record = m_state.snapshot()->record(hit->span);
    const int64_t room = std::max<int64_t>(record.durationNs / 20, TimeAxis::kShortestNs);
    m_state.setVisible({record.startNs - room, record.endNs() + room});
}

void LaneCanvas::wheelEvent(QWheelEvent *event)
{
    const QPoint pixels = event->pixelDelta();
    const QPoint angle = event->angleDelta();
    const double steps = (angle.y() != 0 ? angle.y() : angle.x()) / 120.0;
    event->accept();
    if (event->position().x() < kHeaderPx || event->modifiers() & Qt::ControlModifier) {
        verticalScrollBar()->setValue(scrollY() - static_cast<int>(steps * 3 * RowLayout::kTrackHeight));
        return;
    }
    const bool sideways = std::abs(angle.x()) > std::abs(angle.y());
    if (event->modifiers() & Qt::ShiftModifier || sideways) {
        m_state.panPixels(pixels.isNull() ? -steps * lanesWidth() / 10 : -(sideways ? pixels.x() : pixels.y()));
        return;
    }
    m_state.zoomAt(axisX(event->position().x()), std::pow(0.8, steps));
    hover(event->position());
}

void LaneCanvas::hover(const QPointF &position)
{
    const bool over = position.x() >= kHeaderPx && m_state.snapshot();
    const auto hit = over ? hitAt(position) : std::nullopt;
    m_state.setHovered(hit ? std::optional(hit->span) : std::nullopt);
    m_state.setCursor(over ? std::optional(m_state.axis().timeAt(axisX(position.x()))) : std::nullopt);
    viewport()->setCursor(over ? Qt::CrossCursor : Qt::PointingHandCursor);
}

bool LaneCanvas::showTip(const QPoint &position, const QPoint &global)
{
    if (const auto hit = hitAt(position)) {
        QToolTip::showText(global, tooltipOf(*m_state.snapshot(), hit->span, hit->count - 1), viewport());
        return true;
    }
    const Row *row = position.x() < kHeaderPx && m_state.snapshot() ? rowAtPosition(position) : nullptr;
    if (row && row->kind == Row::Kind::Lane) {
        const Lane &lane = *m_state.snapshot()->ranks[row->rank].lanes[row->lane];
        QToolTip::showText(global,
                           tr("%1: %L2 spans in %3 rows")
                               .arg(QString::fromStdString(lane.info.name))
                               .arg(static_cast<qulonglong>(lane.spanCount()))
                               .arg(lane.tracks().size()),
                           viewport());
        return true;
    }
    if (m_state.snapshot() && position.x() >= kHeaderPx) {
        const int64_t timeNs = m_state.axis().timeAt(axisX(position.x()));
        for (const DeletedSteps &steps : m_state.snapshot()->deleted) {
            if (steps.range.contains(timeNs)) {
                QToolTip::showText(global, textOf(steps), viewport());
                return true;
            }
        }
    }
    QToolTip::hideText();
    return false;
}

bool LaneCanvas::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event);
        if (showTip(help->pos(), help->globalPos()))
            return true;
        event->ignore();
        return true;
    }
    if (event->type() == QEvent::Leave) {
        m_state.setHovered(std::nullopt);
        m_state.setCursor(std::nullopt);
    }
    return QAbstractScrollArea::viewportEvent(event);
}

} // namespace shardscope::ui::timeline
