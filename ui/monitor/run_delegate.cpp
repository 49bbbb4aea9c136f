// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_delegate.h"

#include "ui/common/colors.h"
#include "ui/common/icons.h"
#include "ui/monitor/run_list_model.h"

#include <QApplication>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <algorithm>
#include <cmath>

namespace shardscope::ui {

static constexpr int kMargin = 8;
static constexpr int kIcon = 16;
static constexpr int kSparkWidth = 44;

static void drawSparkline(QPainter *painter, const QRectF &area, const QList<double> &values, const QColor &color)
{
    QList<double> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
    if (finite.size() < 2)
        return;
    const auto [least, most] = std::minmax_element(finite.begin(), finite.end());
    const double height = std::max(*most - *least, 1e-12);
    QPolygonF line;
    for (qsizetype i = 0; i < finite.size(); ++i) {
        const double x = area.left() + area.width() * static_cast<double>(i) / static_cast<double>(finite.size() - 1);
        line << QPointF(x, area.bottom() - area.height() * (finite[i] - *least) / height);
    }
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(color, 1.4));
    painter->drawPolyline(line);
    painter->restore();
}

QSize RunDelegate::sizeHint(const QStyleOptionViewItem &option, const QModelIndex &) const
{
    return {160, 3 * option.fontMetrics.height() + 2 * kMargin + 2};
}

void RunDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    QStyleOptionViewItem box = option;
    initStyleOption(&box, index);
    box.text.clear();
    const QWidget *widget = box.widget;
    widget->style()->drawControl(QStyle::CE_ItemViewItem, &box, painter, widget);

    const Colors &colors = Colors::of(box.palette);
    const bool selected = box.state & QStyle::State_Selected;
    const QColor text = selected ? box.palette.color(QPalette::HighlightedText) : colors.text;
    const QColor muted = selected ? text : colors.muted;
    const int state = index.data(RunListModel::StateRole).toInt();
    const QRect inner = box.rect.adjusted(kMargin, kMargin, -kMargin, -kMargin);
    const int line = box.fontMetrics.height() + 1;

    const QColor tint = selected ? text : colors.state(static_cast<RunState>(state));
    painter->drawPixmap(
        inner.left(), inner.top() + (line - kIcon) / 2,
        tintedIcon(index.data(RunListModel::IconRole).toString(), tint, kIcon, widget->devicePixelRatioF()));
    QFont bold = box.font;
    bold.setBold(true);
    painter->setFont(bold);
    painter->setPen(text);
    const int left = inner.left() + kIcon + 6;
    const QString name = QFontMetrics(bold).elidedText(index.data().toString(), Qt::ElideMiddle, inner.right() - left);
    painter->drawText(QRect(left, inner.top(), inner.right() - left, line), Qt::AlignVCenter | Qt::AlignLeft, name);

    const auto *proxy = qobject_cast<const QSortFilterProxyModel *>(index.model());
    const QModelIndex source = proxy ? proxy->mapToSource(index) : index;
    const auto *model = qobject_cast<const RunListModel *>(source.model());
    const run::RunSummary *run = model ? model->runAt(source) : nullptr;
    if (!run)
        return;
    painter->setFont(box.font);
    painter->setPen(muted);
    const QRect second(left, inner.top() + line, inner.right() - left, line);
    const QRect third = second.translated(0, line);
    const QRectF spark(inner.right() - kSparkWidth, second.top() + 3, kSparkWidth, line - 6);
    painter->drawText(
        second, Qt::AlignVCenter | Qt::AlignLeft,
        box.fontMetrics.elidedText(RunListModel::speedLine(*run), Qt::ElideRight, second.width() - kSparkWidth - 6));
    painter->drawText(third, Qt::AlignVCenter | Qt::AlignLeft,
                      box.fontMetrics.elidedText(RunListModel::memoryLine(*run), Qt::ElideRight, third.width()));
    drawSparkline(painter, spark, index.data(RunListModel::LossTailRole).value<QList<double>>(),
                  selected ? text : colors.accent);
}

} // namespace shardscope::ui
