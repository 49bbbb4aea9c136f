// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/density_strip.h"

#include "ui/common/colors.h"
#include "ui/timeline/coverage.h"
#include "ui/timeline/lane_canvas.h"
#include "ui/timeline/raster.h"

#include <QMouseEvent>
#include <QPainter>
#include <cmath>

namespace shardscope::ui::timeline {

namespace {

constexpr int kTopPx = 6; ///< for hits
constexpr double kEdgePx = 5;

} // namespace

DensityStrip::DensityStrip(TimelineState &state, QWidget *parent)
    : QWidget(parent)
    , m_state(state)
{
    setFixedHeight(kHeightPx);
    setMouseTracking(true);
    setAccessibleName(tr("Overview of the recording"));
    setToolTip(tr("The whole recording: how busy the ranks were. Click or drag to move the view."));
    connect(&state, &TimelineState::contentChanged, this, &DensityStrip::invalidate);
    connect(&state, &TimelineState::viewChanged, this, qOverload<>(&QWidget::update));
    connect(&state, &TimelineState::decorationChanged, this, qOverload<>(&QWidget::update));
}

void DensityStrip::invalidate()
{
    m_valid = false;
    update();
}

void DensityStrip::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange)
        invalidate();
    QWidget::changeEvent(event);
}

int DensityStrip::left() const
{
    return LaneCanvas::kHeaderPx;
}

int DensityStrip::bandWidth() const
{
    return std::max(1, width() - left());
}

double DensityStrip::xOf(int64_t timeNs) const
{
    const TimeRange &all = m_state.axis().limits();
    return left() + static_cast<double>(timeNs - all.startNs) / static_cast<double>(all.durationNs()) * bandWidth();
}

int64_t DensityStrip::timeAt(double x) const
{
    const TimeRange &all = m_state.axis().limits();
    return all.startNs + std::llround((x - left()) / bandWidth() * static_cast<double>(all.durationNs()));
}

QImage DensityStrip::paintDensity() const
{
    const double scale = devicePixelRatioF();
    const Colors &colors = Colors::of(palette());
    QImage image(static_cast<int>(std::lround(bandWidth() * scale)),
                 static_cast<int>(std::lround((height() - kTopPx) * scale)), QImage::Format_RGB32);
    image.setDevicePixelRatio(scale);
    image.fill(colors.card);
    Raster raster(image);
    std::vector<Busy> columns(static_cast<size_t>(image.width()));
    for (const RankTimeline &rank : m_state.snapshot()->ranks) {
        const auto own = coverageOf(rank.activity->exclusive, m_state.axis().limits(), image.width());
        for (size_t x = 0; x < columns.size(); ++x)
            columns[x] += own[x].busy;
    }
    const double full = static_cast<double>(m_state.axis().limits().durationNs()) / image.width() *
                        static_cast<double>(std::max<size_t>(1, m_state.snapshot()->ranks.size()));
    for (int x = 0; x < image.width(); ++x) {
        double y = image.height();
        for (size_t i = 0; i < kCategories; ++i) {
            const auto category = static_cast<SpanCategory>(i);
            if (!m_state.isShown(category))
                continue;
            const double share = static_cast<double>(columns[static_cast<size_t>(x)].ns[i]) / full;
            const double top = y - share * image.height();
            raster.fill(x, x + 1, static_cast<int>(std::lround(top)), static_cast<int>(std::lround(y)),
                        colors.category(category).rgb());
            y = top;
        }
    }
    return image;
}

void DensityStrip::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    const Colors &colors = Colors::of(palette());
    painter.fillRect(rect(), colors.page);
    if (!m_state.snapshot())
        return;
    if (!m_valid || m_paintedSize != size() || m_paintedScale != devicePixelRatioF()) {
        m_density = QPixmap::fromImage(paintDensity());
        m_valid = true;
        m_paintedSize = size();
        m_paintedScale = devicePixelRatioF();
    }
    painter.drawPixmap(left(), kTopPx, m_density);
    painter.setPen(colors.muted);
    painter.drawText(QRect(8, 0, left() - 16, height()), Qt::AlignVCenter | Qt::AlignLeft, tr("All ranks"));
    paintHits(painter);
    if (m_state.brush()) {
        const double x = xOf(m_state.brush()->startNs);
        painter.fillRect(QRectF(x, kTopPx, std::max(1.0, xOf(m_state.brush()->endNs) - x), height() - kTopPx),
                         colors.selection);
    }
    for (const int64_t mark : m_state.marks())
        painter.fillRect(QRectF(xOf(mark), 0, 1, height()), colors.good);
    paintWindow(painter);
    paintDeleted(painter);
}

/// An empty stretch says why it is.
void DensityStrip::paintDeleted(QPainter &painter) const
{
    const Colors &colors = Colors::of(palette());
    const QFontMetricsF metrics(font());
    for (const DeletedSteps &steps : m_state.snapshot()->deleted) {
        const double x0 = xOf(steps.range.startNs);
        const QRectF rect(x0, kTopPx, xOf(steps.range.endNs) - x0, height() - kTopPx);
        painter.fillRect(rect, QBrush(colors.border, Qt::BDiagPattern));
        const QString text = textOf(steps, metrics, rect.width() - 12);
        if (text.isEmpty())
            continue;
        const QSizeF size(metrics.horizontalAdvance(text) + 8, metrics.height());
        const QRectF plate(rect.center() - QPointF(size.width(), size.height()) / 2, size);
        painter.fillRect(plate, colors.page);
        painter.setPen(colors.muted);
        painter.drawText(plate, Qt::AlignCenter, text);
    }
}

void DensityStrip::paintHits(QPainter &painter) const
{
    const auto &found = m_state.found();
    if (!found)
        return;
    const Colors &colors = Colors::of(palette());
    const TimeRange &extent = found->snapshot->extent;
    const double binNs = static_cast<double>(extent.durationNs()) / static_cast<double>(found->bins.size());
    for (size_t i = 0; i < found->bins.size(); ++i) {
        if (found->bins[i] == 0)
            continue;
        const double x = xOf(extent.startNs + std::llround((static_cast<double>(i) + 0.5) * binNs));
        painter.fillRect(QRectF(x - 0.5, 0, 1.5, kTopPx), colors.accent);
    }
}

QRectF DensityStrip::windowRect() const
{
    const double x0 = xOf(m_state.axis().visible().startNs);
    const double x1 = xOf(m_state.axis().visible().endNs);
    const double width = std::max(3.0, x1 - x0);
    return {std::min(x0, left() + bandWidth() - width), static_cast<double>(kTopPx), width, height() - kTopPx - 0.5};
}

void DensityStrip::paintWindow(QPainter &painter) const
{
    const Colors &colors = Colors::of(palette());
    const QRectF window = windowRect();
    QColor shade = colors.page;
    shade.setAlpha(170);
    painter.fillRect(QRectF(left(), kTopPx, window.left() - left(), height()), shade);
    painter.fillRect(QRectF(window.right(), kTopPx, width() - window.right(), height()), shade);
    painter.setPen(QPen(colors.accent, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(window.adjusted(0.5, 0.5, -0.5, -0.5));
}

DensityStrip::Drag DensityStrip::dragAt(double x) const
{
    const QRectF window = windowRect();
    if (window.width() > 4 * kEdgePx || m_state.axis().showsAll()) {
        if (std::abs(x - window.left()) <= kEdgePx)
            return Drag::LeftEdge;
        if (std::abs(x - window.right()) <= kEdgePx)
            return Drag::RightEdge;
    }
    return Drag::Window;
}

void DensityStrip::mousePressEvent(QMouseEvent *event)
{
    const double x = event->position().x();
    if (!m_state.snapshot() || event->button() != Qt::LeftButton || x < left() - kEdgePx)
        return;
    m_drag = dragAt(x);
    m_lastX = x;
    const QRectF window = windowRect();
    if (m_drag == Drag::Window && (x < window.left() || x > window.right())) {
        const int64_t half = m_state.axis().visible().durationNs() / 2;
        m_state.setVisible({timeAt(x) - half, timeAt(x) + half});
    }
}

void DensityStrip::mouseMoveEvent(QMouseEvent *event)
{
    const double x = event->position().x();
    if (m_drag == Drag::None) {
        setCursor(dragAt(x) == Drag::Window ? Qt::ArrowCursor : Qt::SizeHorCursor);
        return;
    }
    TimeRange visible = m_state.axis().visible();
    const int64_t shift = timeAt(x) - timeAt(m_lastX);
    if (m_drag != Drag::RightEdge)
        visible.startNs += shift;
    if (m_drag != Drag::LeftEdge)
        visible.endNs += shift;
    if (visible.durationNs() >= TimeAxis::kShortestNs)
        m_state.setVisible(visible);
    m_lastX = x;
}

void DensityStrip::mouseReleaseEvent(QMouseEvent *)
{
    m_drag = Drag::None;
}

void DensityStrip::wheelEvent(QWheelEvent *event)
{
    const double inView = m_state.axis().xOf(timeAt(event->position().x()));
    const double x = std::clamp(inView, 0.0, m_state.axis().widthPx());
    m_state.zoomAt(x, std::pow(0.8, event->angleDelta().y() / 120.0));
    event->accept();
}

} // namespace shardscope::ui::timeline
