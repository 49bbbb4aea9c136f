// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/recording_worker.h"

#include <QFile>
#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

namespace shardscope::ui {

RecordingWorker::RecordingWorker()
    : m_timer(this) // moves to the thread with its parent
{
    qRegisterMetaType<uint64_t>("uint64_t");
    qRegisterMetaType<RecordingChange>("shardscope::ui::RecordingChange");
    qRegisterMetaType<std::shared_ptr<const store::Catalog>>("std::shared_ptr<const shardscope::store::Catalog>");
    m_timer.setInterval(kPollMs);
    connect(&m_timer, &QTimer::timeout, this, &RecordingWorker::poll);
}

void RecordingWorker::open(const QString &path, uint64_t generation)
{
    close();
    m_generation = generation;
    Result<store::Recording> recording = store::Recording::open(QFile::encodeName(path).toStdString());
    if (!recording) {
        Q_EMIT failed(generation, QString::fromStdString(recording.error().text));
        return;
    }
    m_recording.emplace(std::move(*recording));
    // What is there now is what opened() tells of; later polls tell of what came after.
    if (const Result<RecordingChange> tail = readTail(); !tail) {
        Q_EMIT failed(generation, QString::fromStdString(tail.error().text));
        m_recording.reset();
        return;
    }
    m_told = m_recording->catalog();
    Q_EMIT opened(generation, m_told);
}

void RecordingWorker::close()
{
    m_recording.reset();
    m_seen.clear();
    m_told.reset();
    m_failures = 0;
}

void RecordingWorker::setLive(bool live)
{
    if (live) {
        m_timer.start();
        return;
    }
    if (m_timer.isActive()) { // the last words of a run that has just ended
        m_timer.stop();
        poll();
    }
}

Result<std::any>
RecordingWorker::run(const std::function<Result<std::any>(store::Recording &, const store::CancelToken &)> &query,
                     const store::CancelToken &cancel)
{
    if (!m_recording)
        return fail("No recording is open.");
    try {
        return query(*m_recording, cancel);
    } catch (const std::exception &error) { // bad_alloc of a huge range, say
        return fail("Reading the recording failed: {}", error.what());
    }
}

Result<RecordingChange> RecordingWorker::readTail()
{
    Result<std::vector<store::Tail>> tails = m_recording->tail(m_seen);
    if (!tails)
        return tl::unexpected<Error>(tails.error());
    RecordingChange change;
    int64_t first = std::numeric_limits<int64_t>::max();
    for (store::Tail &tail : *tails) {
        const size_t process = static_cast<size_t>(tail.process);
        if (m_seen.size() <= process)
            m_seen.resize(process + 1, 0);
        m_seen[process] = tail.lastFlushId;
        if (!tail.changed)
            continue;
        if (tail.firstStartNs)
            first = std::min(first, *tail.firstStartNs);
        if (tail.lastEndNs)
            change.lastEndNs = std::max(change.lastEndNs, *tail.lastEndNs);
        change.tails.push_back(std::move(tail));
    }
    if (change.lastEndNs >= 0)
        change.firstStartNs = first;
    return change;
}

void RecordingWorker::poll()
{
    if (!m_recording)
        return;
    const Result<std::shared_ptr<const store::Catalog>> catalog = m_recording->refresh();
    const Result<RecordingChange> change = catalog ? readTail() : tl::unexpected<Error>(catalog.error());
    if (!change) {
        onPollFailed(QString::fromStdString(change.error().text));
        return;
    }
    const bool recovered = std::exchange(m_failures, 0) >= kPatientPolls;
    // Against what was told, not against the recording's last catalogue: a page may have refreshed that.
    const bool grown = recovered || !change->tails.empty() ||
                       (*catalog)->processes.size() != m_told->processes.size() ||
                       (*catalog)->finished != m_told->finished;
    if (!grown)
        return;
    m_told = *catalog;
    Q_EMIT changed(m_generation, m_told, *change);
}

/// Says so once, after several failures in a row, and goes on trying: changed() tells when it can be read again.
void RecordingWorker::onPollFailed(const QString &message)
{
    if (!m_timer.isActive())
        m_failures = kPatientPolls - 1; // the last poll of a run that has ended: there is no next one
    if (++m_failures == kPatientPolls)
        Q_EMIT failed(m_generation, message);
}

} // namespace shardscope::ui
