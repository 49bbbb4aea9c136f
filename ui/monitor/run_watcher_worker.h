// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/monitor/run_watcher.h"

#include <QFileSystemWatcher>
#include <QSet>
#include <QTimer>

namespace shardscope::ui {

/// The half of RunWatcher that lives in its thread and touches files.
class RunWatcherWorker : public QObject
{
    Q_OBJECT
public:
    static constexpr int kTickMs = 1000;
    static constexpr int kEagerTicks = 5;  ///< of looking at all after the directory has changed
    static constexpr int kQuietTicks = 10; ///< between looks at runs that are neither visible nor alive

    explicit RunWatcherWorker(const QString &runsDirectory);

    void start();
    void addRun(const QString &folder);
    void removeAdded(const QString &folder);
    void setVisible(const QStringList &folders);
    void lookAtAll();

Q_SIGNALS:
    void listed(std::shared_ptr<const shardscope::ui::RunList> runs);

private:
    void onDirectoryChanged();
    void tick();
    void listAll();
    void lookAtLive();
    void watch();
    void publish(RunList runs);

    QString m_runsDirectory;
    QFileSystemWatcher m_files;
    QTimer m_timer;
    QStringList m_added;
    QSet<QString> m_visible;
    RunList m_runs;
    int m_ticks = 0;
    int m_eager = 0;          ///< ticks left
    bool m_published = false; ///< an empty list is said once too
};

} // namespace shardscope::ui
