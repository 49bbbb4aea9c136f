// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/monitor/run_watcher.h"

#include <QAbstractListModel>

namespace shardscope::ui {

/// The runs in the sidebar. Rows keep their identity (the folder) from one update to the next, so that selection and
/// scroll position stay.
class RunListModel : public QAbstractListModel
{
    Q_OBJECT
public:
    enum Role { FolderRole = Qt::UserRole, StateRole, IconRole, LossTailRole };

    using QAbstractListModel::QAbstractListModel;

    void update(const RunList &runs);
    /// nullptr where the index is none of this model.
    const run::RunSummary *runAt(const QModelIndex &index) const;
    QModelIndex indexOf(const QString &folder) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;

    /// "8.41 · 18.2 k tok/s" and "23.1 GiB · 31.0 % exposed": the rows below a run's name.
    static QString speedLine(const run::RunSummary &run);
    static QString memoryLine(const run::RunSummary &run);

private:
    void replaceRow(size_t row, const run::RunSummary &run);

    RunList m_runs;
};

} // namespace shardscope::ui
