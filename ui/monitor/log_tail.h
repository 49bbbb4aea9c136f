// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QThread>

namespace shardscope::ui {

class LogTailWorker;

/// Follows a growing text file on a thread of its own: its last part first, then what is added.
class LogTail : public QObject
{
    Q_OBJECT
public:
    static constexpr qint64 kFirstBytes = 2 * 1024 * 1024; ///< of a long log, what is shown

    explicit LogTail(QObject *parent = nullptr);
    ~LogTail() override;

    /// An empty path follows nothing. reset() comes first, then added().
    void follow(const QString &path);

Q_SIGNALS:
    /// What was shown is out of date: another file, or the file was cut. skippedBytes: left out before the first line.
    void reset(qint64 skippedBytes);
    void added(const QString &text);
    /// It can't be read (yet).
    void failed(const QString &message);

private:
    QThread m_thread;
    LogTailWorker *m_worker; ///< lives in m_thread
    quint64 m_serial = 0;
};

} // namespace shardscope::ui
