// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/log_tail.h"

#include "ui/monitor/log_tail_worker.h"

namespace shardscope::ui {

LogTailWorker::LogTailWorker()
    : m_timer(this)
    , m_file(this)
{
    m_timer.setInterval(kPollMs);
    connect(&m_timer, &QTimer::timeout, this, &LogTailWorker::poll);
}

void LogTailWorker::follow(const QString &path, quint64 serial)
{
    m_file.close();
    m_path = path;
    m_serial = serial;
    m_complained = false;
    Q_EMIT reset(0, m_serial);
    if (path.isEmpty()) {
        m_timer.stop();
        return;
    }
    poll();
    m_timer.start();
}

bool LogTailWorker::begin()
{
    m_rest.clear();
    m_file.setFileName(m_path);
    if (!m_file.open(QIODevice::ReadOnly)) {
        if (!std::exchange(m_complained, true))
            Q_EMIT failed(tr("%1: %2").arg(m_path, m_file.errorString()), m_serial);
        return false;
    }
    const qint64 skip = m_file.size() - LogTail::kFirstBytes;
    if (skip > 0) {
        m_file.seek(skip);
        m_file.readLine(); // what is left of a line
    }
    Q_EMIT reset(m_file.pos(), m_serial);
    return true;
}

void LogTailWorker::poll()
{
    if (m_file.isOpen() && m_file.size() < m_file.pos())
        m_file.close(); // it was cut: from the beginning
    if (!m_file.isOpen() && !begin())
        return;
    m_rest += m_file.readAll();
    const qsizetype end = m_rest.lastIndexOf('\n');
    if (end < 0)
        return;
    Q_EMIT added(QString::fromUtf8(m_rest.left(end)), m_serial);
    m_rest.remove(0, end + 1);
}

LogTail::LogTail(QObject *parent)
    : QObject(parent)
    , m_worker(new LogTailWorker)
{
    m_thread.setObjectName(QStringLiteral("log"));
    m_worker->moveToThread(&m_thread);
    connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
    connect(m_worker, &LogTailWorker::reset, this, [this](qint64 skipped, quint64 serial) {
        if (serial == m_serial)
            Q_EMIT reset(skipped);
    });
    connect(m_worker, &LogTailWorker::added, this, [this](const QString &text, quint64 serial) {
        if (serial == m_serial)
            Q_EMIT added(text);
    });
    connect(m_worker, &LogTailWorker::failed, this, [this](const QString &message, quint64 serial) {
        if (serial == m_serial)
            Q_EMIT failed(message);
    });
    m_thread.start();
}

LogTail::~LogTail()
{
    m_thread.quit();
    m_thread.wait();
}

void LogTail::follow(const QString &path)
{
    QMetaObject::invokeMethod(m_worker,
                              [worker = m_worker, path, serial = ++m_serial] { worker->follow(path, serial); });
}

} // namespace shardscope::ui
