// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/run_launcher.h"

#include "core/run/process_identity.h"
#include "core/run/run_folder.h"
#include "core/run/run_status.h"
#include "ui/common/background.h"
#include "ui/common/paths.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>
#include <algorithm>
#include <csignal>

namespace shardscope::ui {

static constexpr int kLookMs = 150;
static constexpr qint64 kOutputBytes = 16 * 1024; ///< of the command line's words, where it failed
static constexpr qint64 kLineBytes = 512;         ///< room for its last line, while it goes on

Result<QString> findCommandLine()
{
    const QString name = QStringLiteral("shardscope-cli");
    const QString given = qEnvironmentVariable("SHARDSCOPE_CLI");
    if (!given.isEmpty() && QFileInfo(given).isExecutable())
        return given;
    const QString beside = QCoreApplication::applicationDirPath() + u'/' + name;
    if (QFileInfo(beside).isExecutable())
        return beside;
    const QString found = QStandardPaths::findExecutable(name);
    if (!found.isEmpty())
        return found;
    return fail("shardscope-cli is neither beside this program nor in PATH. Build or install it, or name it in "
                "SHARDSCOPE_CLI.");
}

RunLauncher::RunLauncher(QObject *parent)
    : QObject(parent)
{
    m_timer.setInterval(kLookMs);
    connect(&m_timer, &QTimer::timeout, this, &RunLauncher::look);
}

void RunLauncher::launch(const QString &program, const QStringList &arguments, const QString &runFolder, int attempt)
{
    const QString folder =
        QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) + QStringLiteral("/shardscope/launches");
    m_output = folder + u'/' + QFileInfo(runFolder).fileName() + QStringLiteral(".log");
    m_runFolder = runFolder;
    m_attempt = attempt;
    m_launching = true;
    m_cancelled = false;
    inBackground(
        this, [=, output = m_output] { return start(program, arguments, output); },
        [this, program](const Result<qint64> &pid) {
            if (!pid) {
                end();
                Q_EMIT failed(tr("%1 could not be started: %2").arg(program, QString::fromStdString(pid.error().text)));
                return;
            }
            m_pid = *pid;
            if (m_cancelled)
                ::kill(static_cast<pid_t>(m_pid), SIGTERM);
            m_timer.start();
        });
}

bool RunLauncher::cancel()
{
    if (!m_launching)
        return false;
    // A run that has begun meanwhile finishes its step: it is told as started, and can be stopped as any other.
    if (m_pid > 0 && !m_cancelled)
        ::kill(static_cast<pid_t>(m_pid), SIGTERM);
    m_cancelled = true;
    return true;
}

/// On a thread of the pool: a slow disk or a big process to fork must not hold up the window.
Result<qint64> RunLauncher::start(const QString &program, const QStringList &arguments, const QString &output)
{
    QDir().mkpath(QFileInfo(output).path());
    QFile::remove(output);
    QProcess process;
    process.setProgram(program);
    process.setArguments(arguments);
    process.setStandardInputFile(QProcess::nullDevice());
    // What it does before there is a run, and why there is none, it says as errors. The rest is the run's own progress,
    // which the window reads elsewhere.
    process.setStandardOutputFile(QProcess::nullDevice());
    process.setStandardErrorFile(output);
    process.setWorkingDirectory(QDir::homePath());
    qint64 pid = 0;
    if (!process.startDetached(&pid)) // forks twice and calls setsid()
        return fail("{}", process.errorString().toStdString());
    return pid;
}

/// What a look at the disk and the process table tells.
struct LaunchState
{
    bool runThere = false;
    bool processThere = false;
    QString output;
};

/// state.json of a later attempt than the one before the launch.
static bool hasBegun(const run::RunFolder &folder, int attemptBefore)
{
    if (attemptBefore == 0)
        return QFileInfo::exists(fromPath(folder.stateFile()));
    const Result<run::RunStatus> status = run::readStatus(folder);
    return status && status->attempt > attemptBefore;
}

void RunLauncher::look()
{
    m_timer.stop();
    inBackground(
        this,
        [folder = m_runFolder, attempt = m_attempt, pid = m_pid, output = m_output]() -> Result<LaunchState> {
            LaunchState state;
            state.processThere = run::processStartTicks(pid).has_value(); // before the folder: it may end just after
            state.runThere = hasBegun(run::RunFolder(toPath(folder)), attempt);
            QFile file(output);
            if (state.runThere)
                file.remove(); // from here on the run's own files say what happens to it
            else if (file.open(QIODevice::ReadOnly)) {
                if (state.processThere) // its end is enough
                    file.seek(std::max<qint64>(0, file.size() - kLineBytes));
                state.output = QString::fromUtf8(file.read(kOutputBytes)).trimmed();
            }
            return state;
        },
        [this](const Result<LaunchState> &looked) {
            const LaunchState state =
                looked ? *looked : LaunchState{.output = QString::fromStdString(looked.error().text)};
            if (state.runThere) {
                const QString folder = m_runFolder;
                end();
                Q_EMIT started(folder);
            } else if (!state.processThere) {
                end();
                Q_EMIT failed(m_cancelled              ? tr("Cancelled. No run was made.")
                              : state.output.isEmpty() ? tr("shardscope-cli ended without a word.")
                                                       : state.output);
            } else {
                if (!state.output.isEmpty())
                    Q_EMIT said(state.output.section(u'\n', -1));
                m_timer.start();
            }
        });
}

void RunLauncher::end()
{
    m_timer.stop();
    m_pid = 0;
    m_launching = false;
}

} // namespace shardscope::ui
