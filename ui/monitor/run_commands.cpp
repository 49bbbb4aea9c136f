// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_commands.h"

#include "core/run/run_status.h"
#include "ui/common/background.h"
#include "ui/common/icons.h"
#include "ui/common/paths.h"

#include <QAction>
#include <QMessageBox>
#include <QPushButton>
#include <QWidget>
#include <chrono>
#include <mutex>
#include <sys/socket.h>

namespace shardscope::ui {

using control::RequestKind;

/// Answers come when a command is in force: after up to two steps, a checkpoint after its files are synced.
static constexpr std::chrono::minutes kPatience{10};
/// Each kind of command of two runs at once.
static constexpr int kThreads = 8;

/// The sockets on which threads wait for an answer, so that the window's end can end the waiting.
class RunCommands::Connections
{
public:
    /// Sends and waits for the answer, or for closeAll().
    Answer request(control::ControlClient &client, const control::Request &request)
    {
        {
            const std::lock_guard lock(m_mutex);
            if (m_closed)
                return fail("The window was closed.");
            m_sockets.insert(client.fd());
        }
        auto reply = client.send(request, kPatience);
        const std::lock_guard lock(m_mutex);
        m_sockets.erase(client.fd()); // before the client closes it and the number is another file's
        return reply;
    }

    void closeAll()
    {
        const std::lock_guard lock(m_mutex);
        m_closed = true;
        for (const int socket : m_sockets)
            ::shutdown(socket, SHUT_RDWR);
    }

private:
    std::mutex m_mutex;
    std::set<int> m_sockets;
    bool m_closed = false;
};

RunCommands::RunCommands(QWidget *window)
    : QObject(window)
    , m_window(window)
    , m_pause(new QAction(this))
    , m_checkpoint(new QAction(tr("&Checkpoint now"), this))
    , m_stop(new QAction(tr("&Stop"), this))
    , m_kill(new QAction(tr("&Kill…"), this))
    , m_resume(new QAction(tr("&Resume"), this))
    , m_connections(std::make_shared<Connections>())
{
    m_threads.setMaxThreadCount(kThreads);
    m_pause->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_P);
    m_checkpoint->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_C);
    m_stop->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_S);
    m_kill->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_K);
    m_checkpoint->setToolTip(tr("Write a checkpoint, one or two steps on; training goes on"));
    m_stop->setToolTip(tr("End with a checkpoint, one or two steps on"));
    m_kill->setToolTip(tr("End all ranks at once, without a checkpoint"));
    connect(m_pause, &QAction::triggered, this,
            [this] { send(m_state == RunState::Paused ? RequestKind::Unpause : RequestKind::Pause); });
    connect(m_checkpoint, &QAction::triggered, this, [this] { send(RequestKind::Checkpoint); });
    connect(m_stop, &QAction::triggered, this, [this] { send(RequestKind::Stop); });
    connect(m_kill, &QAction::triggered, this, &RunCommands::confirmAndKill);
    m_resume->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_G);
    connect(m_resume, &QAction::triggered, this, [this] { Q_EMIT resumeWanted(m_folder); });
    updateLooks();
    updateEnabled();
}

RunCommands::~RunCommands()
{
    m_connections->closeAll();
    m_threads.waitForDone();
}

void RunCommands::setRun(const QString &folder, const run::RunStatus &status)
{
    m_step = status.step;
    m_steps = status.steps;
    m_checkpointStep = status.checkpointStep;
    updateResume();
    if (folder == m_folder && status.state == m_state)
        return;
    m_folder = folder;
    m_state = status.state;
    updateLooks();
    updateEnabled();
}

void RunCommands::updateLooks()
{
    const QPalette palette = m_window->palette();
    const bool paused = m_state == RunState::Paused;
    m_pause->setText(paused ? tr("Un&pause") : tr("&Pause"));
    m_pause->setToolTip(paused ? tr("Go on with the next step") : tr("Wait, one or two steps on; memory stays taken"));
    m_pause->setIcon(
        icon(paused ? QStringLiteral("media-playback-start") : QStringLiteral("media-playback-pause"), palette));
    m_checkpoint->setIcon(icon(QStringLiteral("document-save"), palette));
    m_stop->setIcon(icon(QStringLiteral("media-playback-stop"), palette));
    m_kill->setIcon(icon(QStringLiteral("process-stop"), palette));
    m_resume->setIcon(icon(QStringLiteral("media-playback-start"), palette));
}

void RunCommands::updateEnabled()
{
    const auto waits = [this](RequestKind kind) { return m_waiting.contains({m_folder, kind}); };
    const bool open = !m_folder.isEmpty();
    const bool steps = open && (m_state == RunState::Running || m_state == RunState::Paused);
    const bool live = steps || (open && (m_state == RunState::Starting || m_state == RunState::Stopping));
    m_pause->setEnabled(steps && !waits(RequestKind::Pause) && !waits(RequestKind::Unpause));
    m_checkpoint->setEnabled(steps && !waits(RequestKind::Checkpoint));
    m_stop->setEnabled(live && m_state != RunState::Stopping && !waits(RequestKind::Stop));
    m_kill->setEnabled(live && !waits(RequestKind::StopNow));
    updateResume();
}

void RunCommands::setResuming(const QString &folder)
{
    m_resuming = folder;
    updateResume();
}

void RunCommands::updateResume()
{
    const bool ended = m_state == RunState::Done || m_state == RunState::Failed || m_state == RunState::Lost;
    const bool complete = m_state == RunState::Done && m_step && m_steps && *m_step >= *m_steps;
    const bool possible = !m_folder.isEmpty() && ended && !complete && m_checkpointStep.has_value();
    m_resume->setEnabled(possible && m_resuming.isEmpty());
    const QString keys = m_resume->shortcut().toString(QKeySequence::NativeText);
    if (possible)
        m_resume->setToolTip(tr("Go on from the checkpoint of step %1 in a new attempt, with the same settings (%2)")
                                 .arg(*m_checkpointStep)
                                 .arg(keys));
    else if (m_folder.isEmpty() || !ended)
        m_resume->setToolTip(tr("For a run that has ended (%1)").arg(keys));
    else if (complete)
        m_resume->setToolTip(tr("All of its %1 steps are done").arg(*m_steps));
    else
        m_resume->setToolTip(tr("The run has left no checkpoint to go on from"));
}

void RunCommands::send(RequestKind kind)
{
    const QString folder = m_folder;
    m_waiting.insert({folder, kind});
    updateEnabled();
    sendInBackground(folder, {.kind = kind}, [this, folder, kind](const auto &reply) { onReply(folder, kind, reply); });
}

void RunCommands::sendInBackground(const QString &folder, const control::Request &request,
                                   std::function<void(const Answer &)> done)
{
    inBackground(
        m_threads, this,
        [folder, request, connections = m_connections]() -> Answer {
            Result<control::ControlClient> client = control::ControlClient::connect(run::RunFolder(toPath(folder)));
            if (!client)
                return tl::unexpected<Error>(client.error());
            return connections->request(*client, request);
        },
        std::move(done));
}

void RunCommands::ask(const QString &folder, const control::Request &request)
{
    sendInBackground(folder, request, [this, folder, kind = request.kind](const Answer &reply) {
        if (reply)
            Q_EMIT answered(folder, kind, *reply);
        else
            Q_EMIT refused(folder, kind, QString::fromStdString(reply.error().text), reply.error().forcible);
    });
}

void RunCommands::onReply(const QString &folder, RequestKind kind, const Answer &reply)
{
    m_waiting.erase({folder, kind});
    updateEnabled();
    if (!reply) {
        Q_EMIT failed(QString::fromStdString(reply.error().text));
        return;
    }
    const auto step = reply->find("step");
    const bool hasStep = step != reply->end() && step->is_number_integer();
    const QString at = hasStep ? QString::number(step->get<int64_t>()) : QString();
    switch (kind) {
    case RequestKind::Pause:
        Q_EMIT finished(hasStep ? tr("Paused after step %1.").arg(at) : tr("Paused."));
        break;
    case RequestKind::Unpause:
        Q_EMIT finished(tr("Training goes on."));
        break;
    case RequestKind::Checkpoint:
        Q_EMIT finished(hasStep ? tr("The checkpoint of step %1 is written.").arg(at)
                                : tr("The checkpoint is written."));
        break;
    case RequestKind::Stop:
        Q_EMIT finished(tr("The run has stopped; a checkpoint is written."));
        break;
    case RequestKind::StopNow:
        Q_EMIT finished(tr("The run was ended."));
        break;
    case RequestKind::Status:
    case RequestKind::Subscribe:
    case RequestKind::Set:
    case RequestKind::Undo:
    case RequestKind::Configuration:
        break; // ask() tells of these
    }
}

void RunCommands::confirmAndKill()
{
    auto *box = new QMessageBox(QMessageBox::Warning, tr("Kill the run?"),
                                tr("All ranks end at once. What was trained since the last checkpoint is lost."),
                                QMessageBox::Cancel, m_window);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setInformativeText(tr("“Stop” ends one or two steps on, with a checkpoint."));
    QPushButton *kill = box->addButton(tr("Kill"), QMessageBox::DestructiveRole);
    box->setDefaultButton(QMessageBox::Cancel);
    connect(kill, &QPushButton::clicked, this, [this] { send(RequestKind::StopNow); });
    box->open();
}

} // namespace shardscope::ui
