// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/run_configuration.h"
#include "core/run/run_folder.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"
#include "core/train/trainer.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace shardscope::worker {

/// What a supervisor does for state.json, done by rank 0 where there is none: holds the run's lock and replaces the
/// file every second from a thread of its own.
class StatusKeeper
{
public:
    /// The configuration is kept as the one in force once a step is done.
    StatusKeeper(run::RunFolder folder, run::RunLock lock, int attempt, int worldSize,
                 const config::RunConfiguration &configuration);
    /// Writes the last state. Without finish() the run has failed.
    ~StatusKeeper();
    StatusKeeper(const StatusKeeper &) = delete;
    StatusKeeper &operator=(const StatusKeeper &) = delete;

    void running(int64_t stepsDone);
    void stepDone(const train::StepReport &report);
    /// Figures that came after their step. What they do not know stays as it is.
    void figures(const control::StepFigures &figures);
    void checkpointWritten(int64_t step);
    void lostRecording(const std::string &why);
    void finish(RunState state, std::optional<run::RunFailure> failure = std::nullopt);

private:
    void keep();
    void keepInForce();
    void take(const control::StepFigures &figures);
    void write();

    run::RunFolder m_folder;
    run::RunLock m_lock;
    int m_worldSize;
    std::optional<config::RunConfiguration> m_toKeep; ///< until the first step is done
    std::mutex m_mutex;
    std::condition_variable m_changed;
    run::RunStatus m_status;
    bool m_warned = false;
    bool m_ending = false;
    std::thread m_thread;
};

} // namespace shardscope::worker
