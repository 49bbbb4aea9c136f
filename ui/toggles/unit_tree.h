// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/toggles/toggle_values.h"

#include <QTreeWidget>

namespace shardscope::ui {

/// The units of a model to choose from: the whole model; the embedding; all blocks, and under them each; the head.
class UnitTree : public QTreeWidget
{
    Q_OBJECT
public:
    explicit UnitTree(QWidget *parent = nullptr);

    /// In the order of the forward pass. The same units again leave the choice as it is.
    void setUnits(const Units &units);
    const Units &units() const { return m_units; }
    /// Empty: the whole model.
    Units chosen() const;

Q_SIGNALS:
    void choiceChanged();

private:
    QTreeWidgetItem *addUnit(QTreeWidgetItem *parent, const std::string &unit);

    Units m_units;
    QTreeWidgetItem *m_whole;
};

} // namespace shardscope::ui
