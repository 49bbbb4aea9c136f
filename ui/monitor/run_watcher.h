// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_list.h"

#include <QObject>
#include <QStringList>
#include <QThread>
#include <memory>
#include <vector>

namespace shardscope::ui {

using RunList = std::vector<run::RunSummary>;

class RunWatcherWorker;

/// Keeps the list of runs: watches the runs directory (one inotify watch; a network folder has none, so it is looked at
/// as well) and reads the state.json of what is visible or alive each second, of the others each ten. All on a thread
/// of its own.
class RunWatcher : public QObject
{
    Q_OBJECT
public:
    explicit RunWatcher(const QString &runsDirectory, QObject *parent = nullptr);
    ~RunWatcher() override;

    QString runsDirectory() const { return m_runsDirectory; }
    /// Null until the first look is over.
    std::shared_ptr<const RunList> runs() const { return m_runs; }
    /// A run outside the runs directory that is open here; it stands in the list too.
    void addRun(const QString &folder);
    void removeAdded(const QString &folder);
    /// Folders whose rows can be seen now.
    void setVisible(const QStringList &folders);
    /// Look now: something was renamed, deleted or launched.
    void refresh();

Q_SIGNALS:
    void changed();

private:
    QString m_runsDirectory;
    QThread m_thread;
    RunWatcherWorker *m_worker; ///< lives in m_thread
    std::shared_ptr<const RunList> m_runs;
};

} // namespace shardscope::ui
