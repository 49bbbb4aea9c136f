// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_watcher.h"

#include "ui/monitor/run_watcher_worker.h"

namespace shardscope::ui {

RunWatcher::RunWatcher(const QString &runsDirectory, QObject *parent)
    : QObject(parent)
    , m_runsDirectory(runsDirectory)
    , m_worker(new RunWatcherWorker(runsDirectory))
{
    m_thread.setObjectName(QStringLiteral("runs"));
    m_worker->moveToThread(&m_thread);
    connect(&m_thread, &QThread::started, m_worker, &RunWatcherWorker::start);
    connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
    connect(m_worker, &RunWatcherWorker::listed, this, [this](std::shared_ptr<const RunList> runs) {
        m_runs = std::move(runs);
        Q_EMIT changed();
    });
    m_thread.start();
}

RunWatcher::~RunWatcher()
{
    m_thread.quit();
    m_thread.wait();
}

void RunWatcher::addRun(const QString &folder)
{
    QMetaObject::invokeMethod(m_worker, [worker = m_worker, folder] { worker->addRun(folder); });
}

void RunWatcher::removeAdded(const QString &folder)
{
    QMetaObject::invokeMethod(m_worker, [worker = m_worker, folder] { worker->removeAdded(folder); });
}

void RunWatcher::setVisible(const QStringList &folders)
{
    QMetaObject::invokeMethod(m_worker, [worker = m_worker, folders] { worker->setVisible(folders); });
}

void RunWatcher::refresh()
{
    QMetaObject::invokeMethod(m_worker, [worker = m_worker] { worker->lookAtAll(); });
}

} // namespace shardscope::ui
