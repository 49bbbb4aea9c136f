// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/recording_reader.h"

#include "ui/common/recording_worker.h"

namespace shardscope::ui {

RecordingReader::RecordingReader(QObject *parent)
    : QObject(parent)
    , m_worker(new RecordingWorker)
{
    m_thread.setObjectName(QStringLiteral("recording"));
    m_worker->moveToThread(&m_thread);
    connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
    connect(m_worker, &RecordingWorker::opened, this, &RecordingReader::workerOpened);
    connect(m_worker, &RecordingWorker::failed, this, &RecordingReader::workerFailed);
    connect(m_worker, &RecordingWorker::changed, this, &RecordingReader::workerChanged);
    m_thread.start();
}

RecordingReader::~RecordingReader()
{
    cancelAll();
    m_thread.quit();
    m_thread.wait();
}

void RecordingReader::open(const QString &path)
{
    close();
    m_path = path;
    m_opening = true;
    const uint64_t generation = ++m_generation;
    QMetaObject::invokeMethod(m_worker, [worker = m_worker, path, generation, live = m_live] {
        worker->open(path, generation);
        worker->setLive(live);
    });
    updateBusy();
}

void RecordingReader::close()
{
    if (m_path.isEmpty())
        return;
    ++m_generation;
    cancelAll();
    m_path.clear();
    m_catalog.reset();
    m_isOpen = false;
    m_opening = false;
    QMetaObject::invokeMethod(m_worker, [worker = m_worker] { worker->close(); });
    updateBusy();
    Q_EMIT closed();
}

void RecordingReader::setLive(bool live)
{
    if (live == m_live)
        return;
    m_live = live;
    QMetaObject::invokeMethod(m_worker, [worker = m_worker, live] { worker->setLive(live); });
}

void RecordingReader::workerOpened(uint64_t generation, std::shared_ptr<const store::Catalog> catalog)
{
    if (generation != m_generation)
        return;
    m_opening = false;
    m_catalog = std::move(catalog);
    m_isOpen = !m_catalog->processes.empty();
    if (m_isOpen)
        Q_EMIT opened();
    else
        Q_EMIT waiting();
    updateBusy();
}

void RecordingReader::workerFailed(uint64_t generation, const QString &message)
{
    if (generation != m_generation)
        return;
    m_opening = false;
    Q_EMIT failed(message);
    updateBusy();
}

void RecordingReader::workerChanged(uint64_t generation, std::shared_ptr<const store::Catalog> catalog,
                                    const RecordingChange &change)
{
    if (generation != m_generation)
        return;
    if (!m_isOpen) {
        workerOpened(generation, std::move(catalog));
        return;
    }
    m_catalog = std::move(catalog);
    Q_EMIT changed(change);
}

void RecordingReader::submit(QObject *receiver, const QByteArray &channel, AnyQuery query, AnyDone done)
{
    const Channel key(receiver, channel);
    const auto older = m_pending.find(key);
    if (older != m_pending.end())
        older->second.cancel.cancel();
    const Pending pending{store::CancelToken(), ++m_serial};
    m_pending[key] = pending;
    const QPointer<QObject> guard(receiver);
    QMetaObject::invokeMethod(m_worker, [=, this, worker = m_worker, query = std::move(query), done = std::move(done)] {
        if (pending.cancel.cancelled())
            return;
        Result<std::any> result = worker->run(query, pending.cancel);
        // `this` outlives the worker's thread: the destructor waits for it.
        QMetaObject::invokeMethod(this, [=, this, result = std::move(result)]() mutable {
            finish(key, pending.serial, guard, done, std::move(result));
        });
    });
    updateBusy();
}

void RecordingReader::finish(const Channel &channel, uint64_t serial, const QPointer<QObject> &receiver,
                             const AnyDone &done, Result<std::any> result)
{
    const auto pending = m_pending.find(channel);
    if (pending == m_pending.end() || pending->second.serial != serial)
        return; // a newer one came
    m_pending.erase(pending);
    if (receiver)
        done(std::move(result));
    updateBusy();
}

void RecordingReader::cancel(QObject *receiver, const QByteArray &channel)
{
    const auto pending = m_pending.find(Channel(receiver, channel));
    if (pending == m_pending.end())
        return;
    pending->second.cancel.cancel();
    m_pending.erase(pending);
    updateBusy();
}

void RecordingReader::cancelAll()
{
    for (const auto &[channel, pending] : m_pending)
        pending.cancel.cancel();
    m_pending.clear();
}

void RecordingReader::updateBusy()
{
    if (isBusy() == m_wasBusy)
        return;
    m_wasBusy = isBusy();
    Q_EMIT busyChanged(m_wasBusy);
}

} // namespace shardscope::ui
