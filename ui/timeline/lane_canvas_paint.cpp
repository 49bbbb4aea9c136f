// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_canvas.h"

#include "ui/common/text.h"
#include "ui/timeline/span_details.h"

#include <QPainter>
#include <QPainterPath>

namespace shardscope::ui::timeline {

void LaneCanvas::paintEvent(QPaintEvent *)
{
    QPainter painter(viewport());
    const Colors &colors = Colors::of(palette());
    if (!m_state.snapshot()) {
        painter.fillRect(viewport()->rect(), colors.card);
        return;
    }
    paintLanes(painter);
    paintHeader(painter);
    painter.setClipRect(kHeaderPx, 0, lanesWidth(), viewport()->height());
    paintDecoration(painter);
    paintLinks(painter);
}

void LaneCanvas::paintLanes(QPainter &painter)
{
    const double scale = devicePixelRatioF();
    const QSize size(lanesWidth(), viewport()->height());
    // By what it was painted for: the image's own size is rounded where the scale is no whole number.
    if (!m_lanesValid || m_lanesSize != size || m_lanesScale != scale) {
        QElapsedTimer timer;
        timer.start();
        LanePainter lanes(m_state, Colors::of(palette()), {size, scrollY(), scale});
        QImage image = lanes.paint();
        QPainter onImage(&image);
        paintLabels(onImage, lanes.takeLabels());
        onImage.end();
        m_lanes = QPixmap::fromImage(std::move(image));
        m_lanesValid = true;
        m_lanesSize = size;
        m_lanesScale = scale;
        m_lastPaintNs = timer.nsecsElapsed();
    }
    painter.drawPixmap(kHeaderPx, 0, m_lanes);
}

void LaneCanvas::paintLabels(QPainter &painter, const std::vector<LabelPlace> &labels)
{
    const Snapshot &snapshot = *m_state.snapshot();
    painter.setFont(m_labels.font());
    QRgb lastFill = 0;
    for (const LabelPlace &place : labels) {
        const auto makeText = [&](bool brief) {
            return brief ? briefLabelOf(snapshot, place.name, place.unit, place.operation)
                         : labelOf(snapshot, place.name, place.unit, place.operation);
        };
        constexpr double kMargin = 4;
        const int32_t name = place.operation ? kNone - 1 - static_cast<int32_t>(*place.operation) : place.name;
        const QStaticText *text = m_labels.label(name, place.unit, place.width - 2 * kMargin, makeText);
        if (!text)
            continue;
        if (place.fill != lastFill) {
            painter.setPen(Colors::onFill(QColor(place.fill)));
            lastFill = place.fill;
        }
        const double y = place.y + (place.height - m_labels.lineHeight()) / 2;
        if (place.hatched > 0) { // no colour reads well on both of two stripes
            const double right = std::min(place.hatched, text->size().width() + 2 * kMargin);
            painter.fillRect(QRectF(place.x + 1, place.y + 1, right - 1, place.height - 2), QColor(place.fill));
        }
        painter.drawStaticText(QPointF(place.x + kMargin, y), *text);
    }
}

void LaneCanvas::paintHeader(QPainter &painter)
{
    const Colors &colors = Colors::of(palette());
    painter.fillRect(0, 0, kHeaderPx, viewport()->height(), colors.page);
    painter.setClipRect(0, 0, kHeaderPx, viewport()->height());
    for (const Row &row : m_state.layout().rows()) {
        if (rowRect(row).intersects(viewport()->rect()))
            paintRowHeader(painter, row);
    }
    painter.setClipping(false);
    painter.setPen(colors.border);
    painter.drawLine(kHeaderPx - 1, 0, kHeaderPx - 1, viewport()->height());
}

void LaneCanvas::paintRowHeader(QPainter &painter, const Row &row)
{
    const Colors &colors = Colors::of(palette());
    const Snapshot &snapshot = *m_state.snapshot();
    const RankTimeline &rank = snapshot.ranks[row.rank];
    const bool isRank = row.kind == Row::Kind::Rank;
    const bool foldable = isRank || rank.lanes[row.lane]->tracks().size() > 1;
    const QRect rect = rowRect(row);
    const int lineHeight = isRank ? row.height : std::min(row.height, RowLayout::kTrackHeight - 2);
    const int left = isRank ? 8 : 20;
    if (foldable) {
        const double middle = rect.top() + lineHeight / 2.0;
        QPainterPath arrow;
        if (row.folded)
            arrow.addPolygon(QPolygonF({{left + 1.0, middle - 4}, {left + 5.0, middle}, {left + 1.0, middle + 4}}));
        else
            arrow.addPolygon(QPolygonF({{left - 1.0, middle - 2}, {left + 7.0, middle - 2}, {left + 3.0, middle + 2}}));
        painter.setRenderHint(QPainter::Antialiasing);
        painter.fillPath(arrow, colors.muted);
        painter.setRenderHint(QPainter::Antialiasing, false);
    }
    QFont font = m_labels.font();
    font.setBold(isRank);
    painter.setFont(font);
    painter.setPen(isRank ? colors.text : colors.muted);
    const QRect textRect(left + 12, rect.top(), kHeaderPx - left - 20, lineHeight);
    const QString text = QString::fromStdString(isRank ? labelOf(snapshot, rank) : rank.lanes[row.lane]->info.name);
    painter.drawText(textRect, Qt::AlignVCenter | Qt::AlignLeft,
                     QFontMetrics(font).elidedText(text, Qt::ElideMiddle, textRect.width()));
    if (isRank && row.rank > 0) {
        painter.setPen(colors.border);
        painter.drawLine(0, rect.top() - 2, kHeaderPx, rect.top() - 2);
    }
}

/// Where steps were whose spans are gone: empty lanes there don't mean that nothing was done.
void LaneCanvas::paintDeleted(QPainter &painter)
{
    const Colors &colors = Colors::of(palette());
    const QFontMetricsF metrics(m_labels.font());
    painter.setFont(m_labels.font());
    for (const DeletedSteps &steps : m_state.snapshot()->deleted) {
        const TimeRange seen = steps.range.cutTo(m_state.axis().visible());
        if (seen.isEmpty())
            continue;
        const double left = kHeaderPx + m_state.axis().xOf(seen.startNs);
        const QRectF rect(left, 0, kHeaderPx + m_state.axis().xOf(seen.endNs) - left, viewport()->height());
        painter.fillRect(rect, QBrush(colors.grid, Qt::BDiagPattern));
        const QString text = textOf(steps, metrics, rect.width() - 12);
        if (text.isEmpty())
            continue;
        // Near the top: in the middle of a tall window nobody would look for it.
        const double textWidth = metrics.horizontalAdvance(text) + 10;
        const QRectF plate(rect.center().x() - textWidth / 2, 8, textWidth, metrics.height() + 4);
        painter.fillRect(plate, colors.card);
        painter.setPen(colors.muted);
        painter.drawText(plate, Qt::AlignCenter, text);
    }
}

void LaneCanvas::paintDecoration(QPainter &painter)
{
    const Colors &colors = Colors::of(palette());
    const TimeAxis &axis = m_state.axis();
    const int height = viewport()->height();
    paintDeleted(painter);
    if (m_state.brush()) {
        const double left = kHeaderPx + axis.xOf(m_state.brush()->startNs);
        const double right = kHeaderPx + axis.xOf(m_state.brush()->endNs);
        painter.fillRect(QRectF(left, 0, right - left, height), colors.selection);
        painter.setPen(colors.accent);
        painter.drawLine(QPointF(left, 0), QPointF(left, height));
        painter.drawLine(QPointF(right, 0), QPointF(right, height));
    }
    for (const int64_t mark : m_state.marks()) {
        const double x = kHeaderPx + axis.xOf(mark);
        painter.setPen(QPen(colors.good, 1, Qt::DashLine));
        painter.drawLine(QPointF(x, 0), QPointF(x, height));
    }
    if (m_state.cursorNs()) {
        const double x = kHeaderPx + axis.xOf(*m_state.cursorNs());
        painter.setPen(QPen(colors.muted, 1, Qt::DotLine));
        painter.drawLine(QPointF(x, 0), QPointF(x, height));
    }
}

void LaneCanvas::outline(QPainter &painter, const SpanRef &span, const QColor &color, double width)
{
    // Cut to a little beyond the view: outlines a million pixels long are slow to draw.
    const QRectF view(kHeaderPx - 10, -10, lanesWidth() + 20, viewport()->height() + 20);
    const QRectF rect = rectOf(span).intersected(view);
    if (rect.isEmpty())
        return;
    painter.setPen(QPen(color, width));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5));
}

void LaneCanvas::paintLinks(QPainter &painter)
{
    const Colors &colors = Colors::of(palette());
    painter.setRenderHint(QPainter::Antialiasing);
    QRectF before;
    for (const SpanRef &span : m_state.links()) {
        outline(painter, span, colors.text, 1);
        const QRectF rect = rectOf(span);
        if (rect.isEmpty())
            continue;
        if (!before.isNull()) {
            painter.setPen(QPen(colors.accent, 1.2));
            painter.drawLine(before.bottomLeft(), rect.topLeft());
            painter.drawLine(before.bottomRight(), rect.topRight());
        }
        before = rect;
    }
    if (m_state.hovered())
        outline(painter, *m_state.hovered(), colors.text, 1);
    if (m_state.picked())
        outline(painter, *m_state.picked(), colors.accent, 2.5);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

} // namespace shardscope::ui::timeline
