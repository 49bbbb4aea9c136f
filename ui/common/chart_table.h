// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/chart.h"

#include <QAbstractTableModel>
#include <QDialog>
#include <QStringList>

namespace shardscope::ui {

/// The numbers of a chart: one row a point, one column a series, with the units in the headers.
class ChartTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    struct Column
    {
        QString title;
        ChartUnit unit = ChartUnit::Number;
        std::vector<double> values;
    };

    explicit ChartTableModel(std::vector<Column> columns, QObject *parent = nullptr);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    /// Raw numbers in the shortest form that reads back, C locale; empty where not measured.
    QString csv() const;

private:
    std::vector<Column> m_columns;
};

/// Charts have no accessibility: the same numbers as a table that a screen reader can read and a user can copy.
class ChartTableDialog : public QDialog
{
    Q_OBJECT
public:
    ChartTableDialog(const QString &title, std::vector<ChartTableModel::Column> columns, QWidget *parent = nullptr);
};

} // namespace shardscope::ui
