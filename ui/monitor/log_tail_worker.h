// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QFile>
#include <QTimer>

namespace shardscope::ui {

/// The half of LogTail that lives in its thread. serial tells answers of an older file from those of this one.
class LogTailWorker : public QObject
{
    Q_OBJECT
public:
    static constexpr int kPollMs = 300;

    LogTailWorker();
    void follow(const QString &path, quint64 serial);

Q_SIGNALS:
    void reset(qint64 skippedBytes, quint64 serial);
    void added(const QString &text, quint64 serial);
    void failed(const QString &message, quint64 serial);

private:
    void poll();
    bool begin();

    QTimer m_timer;
    QString m_path;
    QFile m_file;
    QByteArray m_rest; ///< an unfinished line: it may end within a character
    quint64 m_serial = 0;
    bool m_complained = false;
};

} // namespace shardscope::ui
