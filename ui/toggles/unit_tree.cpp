// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/toggles/unit_tree.h"

#include <algorithm>

namespace shardscope::ui {

static constexpr int kUnitRole = Qt::UserRole; ///< the unit's name; absent: the whole model, or a group

UnitTree::UnitTree(QWidget *parent)
    : QTreeWidget(parent)
    , m_whole(new QTreeWidgetItem(this, {tr("Whole model")}))
{
    setHeaderHidden(true);
    setSelectionMode(QAbstractItemView::ExtendedSelection);
    setAccessibleName(tr("Units that a change is for"));
    setToolTip(tr("What a change is for: the whole model, or the units chosen here (Ctrl or Shift for several)"));
    m_whole->setSelected(true);
    connect(this, &QTreeWidget::itemSelectionChanged, this, &UnitTree::choiceChanged);
}

QTreeWidgetItem *UnitTree::addUnit(QTreeWidgetItem *parent, const std::string &unit)
{
    auto *item = new QTreeWidgetItem(parent, {QString::fromStdString(unit)});
    item->setData(0, kUnitRole, QString::fromStdString(unit));
    return item;
}

void UnitTree::setUnits(const Units &units)
{
    if (units == m_units)
        return;
    m_units = units;
    const QSignalBlocker quiet(this);
    qDeleteAll(m_whole->takeChildren());
    QTreeWidgetItem *blocks = nullptr;
    for (const std::string &unit : units) {
        if (!unit.starts_with("block.")) {
            addUnit(m_whole, unit);
            continue;
        }
        if (!blocks)
            blocks = new QTreeWidgetItem(m_whole, {tr("All blocks")});
        addUnit(blocks, unit);
    }
    m_whole->setExpanded(true);
    clearSelection();
    m_whole->setSelected(true);
    setCurrentItem(m_whole);
    blockSignals(false);
    Q_EMIT choiceChanged();
}

Units UnitTree::chosen() const
{
    if (m_whole->isSelected())
        return {};
    Units chosen;
    const QList<QTreeWidgetItem *> items = selectedItems();
    // In the model's order, and a group as its members.
    for (const std::string &unit : m_units) {
        const bool isChosen = std::any_of(items.begin(), items.end(), [&](const QTreeWidgetItem *item) {
            const auto isIt = [&](const QTreeWidgetItem *one) {
                return one->data(0, kUnitRole).toString().toStdString() == unit;
            };
            bool any = isIt(item);
            for (int i = 0; i < item->childCount(); ++i)
                any = any || isIt(item->child(i));
            return any;
        });
        if (isChosen)
            chosen.push_back(unit);
    }
    return chosen;
}

} // namespace shardscope::ui
