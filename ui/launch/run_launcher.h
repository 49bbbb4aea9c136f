// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>

namespace shardscope::ui {

/// shardscope-cli: in SHARDSCOPE_CLI, beside this program, or in PATH.
Result<QString> findCommandLine();

/// Starts `shardscope-cli run …` in a session of its own, so that it outlives the window and its terminal, and tells
/// when the run's folder is there, or what the command line said instead.
class RunLauncher : public QObject
{
    Q_OBJECT
public:
    explicit RunLauncher(QObject *parent = nullptr);

    /// One launch at a time. arguments as runArguments() makes them, or those that resume a run: then attempt is the
    /// one it had, and it has started when there is a later one.
    void launch(const QString &program, const QStringList &arguments, const QString &runFolder, int attempt = 0);
    bool isLaunching() const { return m_launching; }
    /// Ends a launch whose run is not there yet; failed() follows with what the command line said. False: there is
    /// none.
    bool cancel();

Q_SIGNALS:
    /// The command line's last line, while it prepares what takes long (texts are made into tokens).
    void said(const QString &line);
    void started(const QString &runFolder);
    void failed(const QString &message);

private:
    static Result<qint64> start(const QString &program, const QStringList &arguments, const QString &output);
    void look();
    void end();

    QTimer m_timer;
    QString m_runFolder;
    QString m_output;  ///< where the command line's words go until there is a run
    int m_attempt = 0; ///< before this launch; 0: there was no run
    qint64 m_pid = 0;
    bool m_launching = false;
    bool m_cancelled = false;
};

} // namespace shardscope::ui
