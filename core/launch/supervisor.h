// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/control/protocol.h"
#include "core/control/rank_messages.h"
#include "core/launch/command_queue.h"
#include "core/launch/control_server.h"
#include "core/launch/failure_judge.h"
#include "core/launch/hang_watch.h"
#include "core/launch/launch_plan.h"
#include "core/launch/live_settings.h"
#include "core/launch/rank_process.h"
#include "core/launch/step_meter.h"
#include "core/observe/observer.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"

#include <QObject>
#include <QTimer>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace shardscope::launch {

/// Runs one attempt of a run: starts its ranks, watches them, keeps state.json, answers on the control socket. A rank
/// that dies ends the others. Lives in the event loop of one thread.
class Supervisor : public QObject
{
    Q_OBJECT
public:
    /// Takes the lock over until every rank is gone. The observer hears of commands, checkpoints, warnings and deaths,
    /// from the supervisor's thread; it must outlive the supervisor.
    Supervisor(LaunchPlan plan, run::RunLock lock, observe::Observer &observer, QObject *parent = nullptr);
    ~Supervisor() override;

    /// Starts the ranks. After an error nothing runs, and state.json says `failed`.
    Result<> start();

    const run::RunStatus &status() const { return m_status; }
    /// Checkpoint and end, one or two steps on. The second time: endNow().
    void interrupt();
    /// End at once, without a checkpoint. That is no failure: its user asked for it.
    void endNow();
    /// True where interrupt() ended the run before its last step.
    bool interrupted() const;

    /// What arrives within this time after the first sign of a failure is weighed together.
    static constexpr int kSettleMs = 500;
    /// From SIGTERM to SIGKILL. With kSettleMs, a dead rank ends a run well within 5 s.
    static constexpr int kPatienceMs = 2000;
    /// The same for a rank that has said why it fails: it ignores SIGTERM from then on and closes its recording.
    static constexpr int kClosingMs = 10'000;

Q_SIGNALS:
    /// All ranks have reported a step; the status has its figures.
    void stepDone(const shardscope::run::RunStatus &status);
    void stateChanged(const shardscope::run::RunStatus &status);
    /// A line for the user: a checkpoint was written, a warning.
    void message(const QString &text);
    /// Every rank is gone. Who still writes into the run's folder ends that now: as soon as this has been heard,
    /// state.json says how it went, the lock is let go, and who waits for the end is answered.
    void ending(const shardscope::run::RunStatus &status);
    /// All of that is done, and the run may be somebody else's by now.
    void finished(const shardscope::run::RunStatus &status);

private:
    Result<> startRanks();
    void openControlSocket();
    void keepControlSocket();
    void beat();
    void setState(RunState state);
    void tell(const std::string &text);

    void onArrived(int rank, const control::RankMessage &message);
    void on(int rank, const control::ReadyMessage &message);
    void on(int rank, const control::StepMessage &message);
    void on(int rank, const control::StepFigures &figures);
    void on(int rank, const control::PausedMessage &message);
    void on(int rank, const control::RunningMessage &message);
    void on(int rank, const control::ConfiguredMessage &message);
    void on(int rank, const control::CheckpointMessage &message);
    void on(int rank, const control::WarningMessage &message);
    void on(int rank, const control::FailureMessage &message);
    void onRankEnded(int rank);

    void onRequested(qint64 client, const control::Request &request);
    void enqueue(control::Command command, CommandQueue::Done done, std::string_view asker);
    void configure(qint64 client, const control::Request &request);
    /// In force on every rank: kept for who resumes the run.
    void keepInForce(const nlohmann::ordered_json &configuration);
    void sendCommand(const control::Order &order, CommandQueue::Recipients recipients);
    void lookForHang();
    void tellOfDeath(const run::RunFailure &failure);
    void endAfterFailure();
    void killAll(int signal);
    void killTheSilent();
    void killAllSoon();
    bool anyRunning() const;
    void finish();
    run::RunFailure decideFailure() const;

    LaunchPlan m_plan;
    std::optional<run::RunLock> m_lock; ///< none: the run has ended
    observe::Observer &m_observer;
    run::RunStatus m_status;
    std::vector<std::unique_ptr<RankProcess>> m_ranks;
    ControlServer m_server;
    CommandQueue m_commands;
    LiveSettings m_settings;
    std::map<int64_t, control::ConfigurationChange> m_changes; ///< accepted, and not in force yet
    StepMeter m_meter;
    FailureJudge m_judge;
    HangWatch m_hangWatch;
    std::optional<run::RunFailure> m_hang; ///< why the supervisor has ended the run
    QTimer m_heartbeat;
    std::vector<std::pair<ControlServer::ClientId, int64_t>> m_endNowAskers; ///< client and request
    int m_interrupts = 0;
    bool m_killing = false; ///< ranks that end from now on were ended by us
    bool m_endingAfterFailure = false;
    bool m_finished = false;
    bool m_isInForceKept = false;
    bool m_toldOfBrokenState = false;
    bool m_toldOfNoSocket = false;
};

} // namespace shardscope::launch
