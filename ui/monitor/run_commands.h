// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"
#include "core/control/control_client.h"

#include <QObject>
#include <QString>
#include <QThreadPool>
#include <functional>
#include <memory>
#include <optional>
#include <set>

class QAction;

namespace shardscope::run {
struct RunStatus;
}

namespace shardscope::ui {

/// Pause, Unpause, Checkpoint, Stop, Kill and Resume for the run that is open, as actions that know when they make
/// sense. A command goes over the run's control socket on a thread of its own; its answer comes when it is in force.
/// The destructor lets go of commands that still wait: their runs have got them.
class RunCommands : public QObject
{
    Q_OBJECT
public:
    explicit RunCommands(QWidget *window);
    ~RunCommands() override;

    /// The run that commands go to; an empty folder disables them all.
    void setRun(const QString &folder, const run::RunStatus &status);

    QAction *pauseAction() const { return m_pause; } ///< pauses or unpauses, as its text says
    QAction *checkpointAction() const { return m_checkpoint; }
    QAction *stopAction() const { return m_stop; }
    QAction *killAction() const { return m_kill; }
    /// Enabled for a run that has ended before its last step and has a checkpoint; its tool tip says which, or why not.
    QAction *resumeAction() const { return m_resume; }
    /// The run that is being started again; empty: none.
    void setResuming(const QString &folder);
    /// Set, Undo, Configuration or Checkpoint, to the run in that folder; answered() or refused() follows.
    void ask(const QString &folder, const control::Request &request);

    /// Pause's icon and text follow the state and the theme.
    void updateLooks();

Q_SIGNALS:
    /// A sentence for the status bar: "Checkpoint of step 20 was written."
    void finished(const QString &message);
    void failed(const QString &message);
    /// Somebody else starts the new attempt: the socket of a run that has ended is gone.
    void resumeWanted(const QString &folder);
    /// What ask() was answered, and by which run.
    void answered(const QString &folder, shardscope::control::RequestKind kind, const nlohmann::json &result);
    /// forcible: a Set that would be carried out with force.
    void refused(const QString &folder, shardscope::control::RequestKind kind, const QString &why, bool forcible);

private:
    class Connections;
    using Answer = tl::expected<nlohmann::json, control::ControlClient::Refusal>;

    void send(control::RequestKind kind);
    void sendInBackground(const QString &folder, const control::Request &request,
                          std::function<void(const Answer &)> done);
    void confirmAndKill();
    void updateEnabled();
    void updateResume();
    void onReply(const QString &folder, control::RequestKind kind, const Answer &reply);

    QWidget *m_window;
    QAction *m_pause;
    QAction *m_checkpoint;
    QAction *m_stop;
    QAction *m_kill;
    QAction *m_resume;
    QString m_folder;
    QString m_resuming;
    RunState m_state = RunState::Done;
    std::optional<int64_t> m_step, m_steps, m_checkpointStep;
    std::set<std::pair<QString, control::RequestKind>> m_waiting; ///< for an answer
    std::shared_ptr<Connections> m_connections;                   ///< of the threads that wait
    QThreadPool m_threads; ///< not Qt's pool: a hung run would fill that, and Kill would wait behind Stop
};

} // namespace shardscope::ui
