// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/run_launcher.h"

#include "core/run/process_identity.h"
#include "core/run/run_folder.h"
#include "ui/common/background.h"
#include "ui/common/paths.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>

namespace shardscope::ui {

static constexpr int kLookMs = 150;

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

void RunLauncher::launch(const QString &program, const QStringList &arguments, const QString &runFolder)
{
    const QString folder =
        QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) + QStringLiteral("/shardscope/launches");
    QDir().mkpath(folder);
    m_output = folder + u'/' + QFileInfo(runFolder).fileName() + QStringLiteral(".log");
    QFile::remove(m_output);
    m_runFolder = runFolder;
    QProcess process;
    process.setProgram(program);
    process.setArguments(arguments);
    process.setStandardInputFile(QProcess::nullDevice());
    process.setStandardOutputFile(m_output);
    process.setStandardErrorFile(m_output, QIODevice::Append);
    process.setWorkingDirectory(QDir::homePath());
    qint64 pid = 0;
    if (!process.startDetached(&pid)) { // forks twice and calls setsid()
        Q_EMIT failed(tr("%1 could not be started: %2").arg(program, process.errorString()));
        return;
    }
    m_pid = pid;
    m_timer.start();
}

/// What a look at the disk and the process table tells.
struct LaunchState
{
    bool folderThere = false;
    bool processThere = false;
    QString output;
};

void RunLauncher::look()
{
    m_timer.stop();
    inBackground(
        this,
        [folder = m_runFolder, pid = m_pid, output = m_output] {
            LaunchState state;
            state.processThere = run::processStartTicks(pid).has_value(); // before the folder: it may end just after
            state.folderThere = QFileInfo::exists(fromPath(run::RunFolder(toPath(folder)).stateFile()));
            QFile file(output);
            if (!state.folderThere && !state.processThere && file.open(QIODevice::ReadOnly))
                state.output = QString::fromUtf8(file.read(16 * 1024)).trimmed();
            return state;
        },
        [this](const LaunchState &state) {
            if (state.folderThere) {
                const QString folder = m_runFolder;
                end();
                Q_EMIT started(folder);
            } else if (!state.processThere) {
                end();
                Q_EMIT failed(state.output.isEmpty() ? tr("shardscope-cli ended without a word.") : state.output);
            } else {
                m_timer.start();
            }
        });
}

void RunLauncher::end()
{
    m_timer.stop();
    m_pid = 0;
}

} // namespace shardscope::ui
