// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "profiler/store/snapshot.h"
#include "ui/monitor/running_time.h"

#include <QAbstractTableModel>
#include <memory>
#include <vector>

namespace shardscope::ui {

/// Commands, checkpoints, warnings, NaN, deaths: the newest first.
class EventsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Time, Step, Who, Kind, Text, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    void clear();
    /// Events in the order of their time; ranks are looked up in the catalogue. Shown in running time, as in the
    /// charts.
    void add(const std::vector<store::EventInfo> &events, const store::Catalog &catalog, const RunningTime &time = {});
    const store::EventInfo &eventAt(int row) const;
    static QString nameOf(EventKind kind);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Row
    {
        store::EventInfo event;
        QString who;
    };
    QString textOf(const Row &row, int column) const;

    std::vector<Row> m_rows; ///< oldest first; shown from the end
    RunningTime m_time;
};

} // namespace shardscope::ui
