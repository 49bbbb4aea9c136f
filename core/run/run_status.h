// SPDX-License-Identifier: Apache-2.0
// state.json: what the supervisor says of a run once a second. The run list, `status` and the window read only this.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"
#include "core/run/run_folder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::run {

/// Why a run failed. The first failing rank's reason.
struct RunFailure
{
    std::optional<int> rank; ///< none: the supervisor itself
    std::optional<int> signal;
    std::optional<int> exitCode;
    std::string text; ///< the rank's own message, or the last lines of its log
};

/// One line: "rank 1 was killed by signal 9 (SIGKILL)", "rank 0 ended with exit code 1". Without the text.
std::string describeEnd(const RunFailure &failure);

/// One rank's process, as its supervisor sees it.
struct RankStatus
{
    int rank = 0;
    int64_t pid = 0;
    RunState state = RunState::Starting; ///< done, failed: it has ended
    std::optional<int> exitCode;
    std::optional<int> signal;
    std::optional<int64_t> step;
    std::optional<int64_t> peakAllocatedBytes;
};

/// The content of state.json. Optional fields are null where not measured (yet).
struct RunStatus
{
    RunState state = RunState::Queued;
    int attempt = 0;
    int64_t pid = 0; ///< the supervisor's (rank 0's without one)
    int64_t pidStartTicks = 0;
    std::string bootId;
    int64_t heartbeatNs = 0;
    int64_t startedNs = 0; ///< of this attempt
    std::optional<int64_t> endedNs;
    std::string socket; ///< control socket; empty: none
    std::optional<int64_t> step;
    std::optional<int64_t> steps;
    std::optional<double> loss;
    std::optional<double> validationLoss;
    std::vector<double> lossTail;       ///< of the last 64 steps, oldest first
    std::optional<StepState> stepState; ///< of the newest step
    std::optional<double> lossScale;    ///< of fp16, in that step
    int64_t skippedSteps = 0;           ///< of this attempt: whose state was not ok
    std::optional<double> tokensPerSecond;
    std::optional<int64_t> stepNs;             ///< of the slowest rank
    std::optional<int64_t> peakAllocatedBytes; ///< of the rank that holds most
    std::optional<double> exposedCommunicationShare;
    std::optional<int64_t> checkpointStep; ///< newest one of this run
    std::optional<RunFailure> failure;
    std::string recordingProblem; ///< why a part of the recording is missing; empty: all is well
    std::vector<RankStatus> ranks;

    static constexpr size_t kLossTail = 64;
    /// Queued, starting, running, paused or stopping.
    bool live() const;
    /// Written by rank 0, as there is no supervisor: peak and exposed share are rank 0's own.
    bool ofRankZero() const { return ranks.empty(); }
    /// Done, as asked for, before its last step.
    bool stoppedEarly() const;
    /// How the newest step ended, and the loss scale that it had.
    void take(StepState state, std::optional<double> scale);
};

/// What a person is told: the state, and "stopped" where one stoppedEarly().
std::string_view stateWord(const RunStatus &status);

/// One line of JSON with every key of the contract.
std::string toJson(const RunStatus &status);
/// Keys that are missing or of another type keep their defaults; a text that is no JSON object is an error.
Result<RunStatus> statusFromJson(std::string_view text);

Result<> writeStatus(const RunFolder &folder, const RunStatus &status);
/// As the file says.
Result<RunStatus> readStatus(const RunFolder &folder);
/// As it is now: a live state whose supervisor is gone is shown as lost.
Result<RunStatus> currentStatus(const RunFolder &folder, int64_t nowNs);

/// True where nobody keeps a run alive that calls itself live: its lock is free and its process is gone (or, where the
/// process is of another machine or boot, its heartbeat is older than kHeartbeatPatienceNs).
bool isLost(const RunStatus &status, bool locked, int64_t nowNs);
inline constexpr int64_t kHeartbeatPatienceNs = 10'000'000'000;

} // namespace shardscope::run
