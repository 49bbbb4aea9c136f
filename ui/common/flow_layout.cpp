// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/flow_layout.h"

#include <QWidget>
#include <algorithm>

namespace shardscope::ui {

FlowLayout::FlowLayout(int spacing, bool stretch)
    : m_stretch(stretch)
{
    setContentsMargins(0, 0, 0, 0);
    setSpacing(spacing);
}

FlowLayout::~FlowLayout()
{
    for (QLayoutItem *item : m_items)
        delete item;
}

void FlowLayout::addItem(QLayoutItem *item)
{
    m_items.push_back(item);
}

QLayoutItem *FlowLayout::itemAt(int index) const
{
    return index >= 0 && index < count() ? m_items[static_cast<size_t>(index)] : nullptr;
}

QLayoutItem *FlowLayout::takeAt(int index)
{
    QLayoutItem *item = itemAt(index);
    if (item)
        m_items.erase(m_items.begin() + index);
    return item;
}

void FlowLayout::setGeometry(const QRect &rect)
{
    QLayout::setGeometry(rect);
    arrange(rect, true);
}

QSize FlowLayout::minimumSize() const
{
    QSize size;
    for (const QLayoutItem *item : m_items)
        size = size.expandedTo(item->minimumSize());
    const QMargins margins = contentsMargins();
    return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

int FlowLayout::columnWidth(int width) const
{
    int widest = 1;
    int shown = 0;
    for (const QLayoutItem *item : m_items) {
        if (item->isEmpty())
            continue;
        widest = std::max(widest, item->sizeHint().width());
        ++shown;
    }
    const int most = std::clamp((width + spacing()) / (widest + spacing()), 1, std::max(1, shown));
    const int rows = (shown + most - 1) / most;
    const int columns = rows > 1 ? (shown + rows - 1) / rows : most; // three and three, not four and two
    return (width - (columns - 1) * spacing()) / columns;
}

int FlowLayout::arrange(const QRect &rect, bool move) const
{
    const QMargins margins = contentsMargins();
    const QRect area = rect.marginsRemoved(margins);
    const int fixedWidth = m_stretch ? columnWidth(area.width()) : 0;
    int x = area.x();
    int y = area.y();
    int lineHeight = 0;
    for (QLayoutItem *item : m_items) {
        if (item->isEmpty())
            continue;
        const QSize hint = item->sizeHint();
        const int width = m_stretch ? fixedWidth : std::min(hint.width(), area.width());
        if (x > area.x() && x + width > area.right() + 1) {
            x = area.x();
            y += lineHeight + spacing();
            lineHeight = 0;
        }
        if (move)
            item->setGeometry(QRect(x, y, width, hint.height()));
        x += width + spacing();
        lineHeight = std::max(lineHeight, hint.height());
    }
    return y + lineHeight - rect.y() + margins.bottom();
}

} // namespace shardscope::ui
