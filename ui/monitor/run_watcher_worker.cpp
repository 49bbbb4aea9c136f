// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_watcher_worker.h"

#include "core/base/clock.h"
#include "ui/common/paths.h"

#include <QDir>
#include <algorithm>
#include <exception>

namespace shardscope::ui {

RunWatcherWorker::RunWatcherWorker(const QString &runsDirectory)
    : m_runsDirectory(runsDirectory)
    , m_files(this)
    , m_timer(this)
{
    qRegisterMetaType<std::shared_ptr<const RunList>>("std::shared_ptr<const shardscope::ui::RunList>");
    m_timer.setInterval(kTickMs);
    connect(&m_timer, &QTimer::timeout, this, &RunWatcherWorker::tick);
    connect(&m_files, &QFileSystemWatcher::directoryChanged, this, &RunWatcherWorker::onDirectoryChanged);
}

void RunWatcherWorker::start()
{
    lookAtAll();
    m_timer.start();
}

void RunWatcherWorker::watch()
{
    // Until the directory exists its nearest parent tells when it appears.
    QDir folder(m_runsDirectory);
    while (!folder.exists() && !folder.isRoot())
        folder.setPath(QFileInfo(folder.absolutePath()).absolutePath());
    if (m_files.directories().contains(folder.absolutePath()))
        return;
    if (!m_files.directories().isEmpty())
        m_files.removePaths(m_files.directories());
    m_files.addPath(folder.absolutePath());
}

void RunWatcherWorker::addRun(const QString &folder)
{
    if (!m_added.contains(folder))
        m_added << folder;
    lookAtAll();
}

void RunWatcherWorker::removeAdded(const QString &folder)
{
    m_added.removeAll(folder);
    lookAtAll();
}

void RunWatcherWorker::setVisible(const QStringList &folders)
{
    m_visible = QSet<QString>(folders.begin(), folders.end());
}

/// No exception may leave this thread's slots. The list stays as it was, and the next tick looks again.
template <typename Look>
static void guarded(const Look &look)
{
    try {
        look();
    } catch (const std::exception &error) {
        qWarning("Looking at the runs failed: %s", error.what());
    }
}

void RunWatcherWorker::lookAtAll()
{
    guarded([this] { listAll(); });
}

void RunWatcherWorker::listAll()
{
    watch();
    const int64_t now = realtimeNs();
    RunList runs = run::listRuns(toPath(m_runsDirectory), now);
    for (const QString &folder : std::as_const(m_added)) {
        const run::RunFolder added(toPath(folder));
        const bool listed = std::any_of(runs.begin(), runs.end(), [&](const run::RunSummary &summary) {
            return summary.folder.root() == added.root();
        });
        if (!listed && added.looksLikeRun())
            runs.insert(runs.begin(), run::summarize(added, now));
    }
    m_ticks = 0;
    publish(std::move(runs));
}

void RunWatcherWorker::onDirectoryChanged()
{
    m_eager = kEagerTicks; // a new folder is a run only when its files are there, and of those nothing tells
    lookAtAll();
}

void RunWatcherWorker::tick()
{
    m_eager = std::max(0, m_eager - 1);
    if (++m_ticks >= kQuietTicks || m_eager > 0) {
        lookAtAll();
        return;
    }
    guarded([this] { lookAtLive(); });
}

void RunWatcherWorker::lookAtLive()
{
    const int64_t now = realtimeNs();
    RunList runs = m_runs;
    for (run::RunSummary &summary : runs) {
        if (!summary.status.live() && !m_visible.contains(fromPath(summary.folder.root())))
            continue;
        const std::string name = std::move(summary.name); // the directory's, where the run lies elsewhere
        summary = run::summarize(summary.folder, now);
        summary.name = name;
    }
    publish(std::move(runs));
}

static bool same(const run::RunSummary &a, const run::RunSummary &b)
{
    return a.folder.root() == b.folder.root() && a.name == b.name && a.problem == b.problem &&
           a.notes.shownName == b.notes.shownName && run::toJson(a.status) == run::toJson(b.status);
}

void RunWatcherWorker::publish(RunList runs)
{
    if (m_published && std::equal(runs.begin(), runs.end(), m_runs.begin(), m_runs.end(), same))
        return;
    m_runs = std::move(runs);
    m_published = true;
    Q_EMIT listed(std::make_shared<const RunList>(m_runs));
}

} // namespace shardscope::ui
