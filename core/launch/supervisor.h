// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/control/protocol.h"
#include "core/control/rank_messages.h"
#include "core/launch/launch_plan.h"
#include "core/observe/observer.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"

#include <QObject>
#include <QTimer>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace shardscope::launch {

class ControlServer;
class RankProcess;

/// Runs one attempt of a run: starts its ranks, watches them, keeps state.json, answers on the control socket. A rank
/// that dies ends the others: SIGTERM, and SIGKILL after kPatienceMs. Lives in the event loop of one thread.
class Supervisor : public QObject
{
    Q_OBJECT
public:
    /// Takes the lock over for as long as it lives. The observer hears of commands, checkpoints, warnings and deaths,
    /// from the supervisor's thread.
    Supervisor(LaunchPlan plan, run::RunLock lock, observe::Observer &observer, QObject *parent = nullptr);
    ~Supervisor() override;

    /// Starts the ranks. After an error nothing runs, and state.json says `failed`.
    Result<> start();

    const run::RunStatus &status() const { return m_status; }
    /// Finish the step, checkpoint, end. The second time: endNow().
    void interrupt();
    /// End at once, without a checkpoint. The run counts as `done` where its user asked for it.
    void endNow();
    /// True where a user's interrupt or stop ended the run before its last step.
    bool interrupted() const { return m_interrupted; }

    /// From the word to the others' SIGTERM to their SIGKILL; with what comes before it a dead rank ends a run in 5 s.
    static constexpr int kPatienceMs = 2000;

Q_SIGNALS:
    /// All ranks have reported this step; the status has its figures.
    void stepDone(const shardscope::run::RunStatus &status);
    void stateChanged(const shardscope::run::RunStatus &status);
    /// A line for the user: a checkpoint was written, a warning.
    void message(const QString &text);
    /// Every rank is gone and state.json says how it went.
    void finished(const shardscope::run::RunStatus &status);

private:
    struct Private;
    std::unique_ptr<Private> d;
    run::RunStatus m_status;
    bool m_interrupted = false;
};

} // namespace shardscope::launch
