// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_status.h"

#include "core/base/file.h"
#include "core/run/json_access.h"
#include "core/run/process_identity.h"
#include "core/run/run_lock.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

using nlohmann::json;

namespace shardscope::run {

bool RunStatus::live() const
{
    return state != RunState::Done && state != RunState::Failed && state != RunState::Lost;
}

bool RunStatus::stoppedEarly() const
{
    return state == RunState::Done && steps && step.value_or(0) < *steps;
}

std::string_view stateWord(const RunStatus &status)
{
    return status.stoppedEarly() ? std::string_view("stopped") : shardscope::toText(status.state);
}

std::string describeEnd(const RunFailure &failure)
{
    if (!failure.rank)
        return "the cause is not one rank's own";
    const std::string who = fmt::format("rank {}", *failure.rank);
    if (failure.signal) {
        const char *abbreviation = ::sigabbrev_np(*failure.signal);
        return fmt::format("{} was killed by signal {}{}", who, *failure.signal,
                           abbreviation ? fmt::format(" (SIG{})", abbreviation) : std::string());
    }
    if (failure.exitCode)
        return fmt::format("{} ended with exit code {}", who, *failure.exitCode);
    return fmt::format("{} failed", who);
}

static json toJson(const RankStatus &rank)
{
    return {{"rank", rank.rank},
            {"pid", rank.pid},
            {"state", toText(rank.state)},
            {"exit_code", orNull(rank.exitCode)},
            {"signal", orNull(rank.signal)},
            {"step", orNull(rank.step)},
            {"peak_allocated_bytes", orNull(rank.peakAllocatedBytes)}};
}

static json toJson(const RunFailure &failure)
{
    return {{"rank", orNull(failure.rank)},
            {"signal", orNull(failure.signal)},
            {"exit_code", orNull(failure.exitCode)},
            {"text", failure.text}};
}

void RunStatus::take(StepState state, std::optional<double> scale)
{
    stepState = state;
    lossScale = scale;
    skippedSteps += state == StepState::Ok ? 0 : 1;
}

std::string toJson(const RunStatus &status)
{
    json ranks = json::array();
    for (const RankStatus &rank : status.ranks)
        ranks.push_back(toJson(rank));
    const json all = {
        {"state", toText(status.state)},
        {"attempt", status.attempt},
        {"pid", status.pid},
        {"pid_start_ticks", status.pidStartTicks},
        {"boot_id", status.bootId},
        {"heartbeat_ns", status.heartbeatNs},
        {"started_ns", status.startedNs},
        {"ended_ns", orNull(status.endedNs)},
        {"socket", status.socket.empty() ? json(nullptr) : json(status.socket)},
        {"step", orNull(status.step)},
        {"steps", orNull(status.steps)},
        {"loss", orNull(status.loss)},
        {"validation_loss", orNull(status.validationLoss)},
        {"loss_tail", status.lossTail},
        {"step_state", status.stepState ? json(toText(*status.stepState)) : json(nullptr)},
        {"loss_scale", orNull(status.lossScale)},
        {"skipped_steps", status.skippedSteps},
        {"tokens_per_second", orNull(status.tokensPerSecond)},
        {"step_ns", orNull(status.stepNs)},
        {"peak_allocated_bytes", orNull(status.peakAllocatedBytes)},
        {"exposed_communication_share", orNull(status.exposedCommunicationShare)},
        {"checkpoint_step", orNull(status.checkpointStep)},
        {"failure", status.failure ? toJson(*status.failure) : json(nullptr)},
        {"recording_problem", status.recordingProblem.empty() ? json(nullptr) : json(status.recordingProblem)},
        {"ranks", ranks}};
    return dump(all);
}

static void takeState(const json &object, RunState &state)
{
    std::string text;
    take(object, "state", text);
    state = fromText<RunState>(text).value_or(state);
}

static RankStatus rankFromJson(const json &object)
{
    RankStatus rank;
    take(object, "rank", rank.rank);
    take(object, "pid", rank.pid);
    takeState(object, rank.state);
    take(object, "exit_code", rank.exitCode);
    take(object, "signal", rank.signal);
    take(object, "step", rank.step);
    take(object, "peak_allocated_bytes", rank.peakAllocatedBytes);
    return rank;
}

static RunFailure failureFromJson(const json &object)
{
    RunFailure failure;
    take(object, "rank", failure.rank);
    take(object, "signal", failure.signal);
    take(object, "exit_code", failure.exitCode);
    take(object, "text", failure.text);
    return failure;
}

static void takeLists(const json &object, RunStatus &status)
{
    if (const auto tail = object.find("loss_tail"); tail != object.end() && tail->is_array()) {
        // A loss that was not finite is null: it keeps its place as NaN.
        for (const json &loss : *tail)
            status.lossTail.push_back(loss.is_number() ? loss.get<double>() : std::nan(""));
    }
    if (const auto failure = object.find("failure"); failure != object.end() && failure->is_object())
        status.failure = failureFromJson(*failure);
    if (const auto ranks = object.find("ranks"); ranks != object.end() && ranks->is_array()) {
        for (const json &rank : *ranks) {
            if (rank.is_object())
                status.ranks.push_back(rankFromJson(rank));
        }
    }
}

Result<RunStatus> statusFromJson(std::string_view text)
{
    const auto object = parseObject(text, "The status of a run");
    if (!object)
        return tl::unexpected(object.error());
    RunStatus status;
    takeState(*object, status.state);
    take(*object, "attempt", status.attempt);
    take(*object, "pid", status.pid);
    take(*object, "pid_start_ticks", status.pidStartTicks);
    take(*object, "boot_id", status.bootId);
    take(*object, "heartbeat_ns", status.heartbeatNs);
    take(*object, "started_ns", status.startedNs);
    take(*object, "ended_ns", status.endedNs);
    take(*object, "socket", status.socket);
    take(*object, "recording_problem", status.recordingProblem);
    take(*object, "step", status.step);
    take(*object, "steps", status.steps);
    take(*object, "loss", status.loss);
    take(*object, "validation_loss", status.validationLoss);
    std::string stepState;
    take(*object, "step_state", stepState);
    status.stepState = fromText<StepState>(stepState);
    take(*object, "loss_scale", status.lossScale);
    take(*object, "skipped_steps", status.skippedSteps);
    take(*object, "tokens_per_second", status.tokensPerSecond);
    take(*object, "step_ns", status.stepNs);
    take(*object, "peak_allocated_bytes", status.peakAllocatedBytes);
    take(*object, "exposed_communication_share", status.exposedCommunicationShare);
    take(*object, "checkpoint_step", status.checkpointStep);
    takeLists(*object, status);
    return status;
}

Result<> writeStatus(const RunFolder &folder, const RunStatus &status)
{
    // The next heartbeat replaces it; a slow disk must not hold the supervisor up each second.
    const Durability durability = status.live() ? Durability::Passing : Durability::Lasting;
    return writeFileAtomically(folder.stateFile(), toJson(status) + "\n", durability);
}

Result<RunStatus> readStatus(const RunFolder &folder)
{
    std::error_code error;
    if (!std::filesystem::exists(folder.stateFile(), error))
        return fail("The run {} has no state.json: it never started, or its files were not all copied.", folder.name());
    const auto text = readTextFile(folder.stateFile());
    if (!text)
        return tl::unexpected(text.error());
    auto status = statusFromJson(*text);
    if (!status)
        return fail("{} can't be read: it is no JSON object. The run's other files are not affected.",
                    folder.stateFile().string());
    return status;
}

bool isLost(const RunStatus &status, bool locked, int64_t nowNs)
{
    if (!status.live() || locked)
        return false;
    if (!status.bootId.empty() && status.bootId == bootId())
        return processStartTicks(status.pid) != status.pidStartTicks;
    return std::llabs(nowNs - status.heartbeatNs) > kHeartbeatPatienceNs;
}

Result<RunStatus> currentStatus(const RunFolder &folder, int64_t nowNs)
{
    // The lock is asked first: a supervisor that ends in between has written its last state before it let go.
    const bool locked = isLocked(folder);
    auto status = readStatus(folder);
    if (status && isLost(*status, locked, nowNs)) {
        status->state = RunState::Lost;
        for (RankStatus &rank : status->ranks) {
            if (rank.state != RunState::Done && rank.state != RunState::Failed)
                rank.state = RunState::Lost;
        }
    }
    return status;
}

} // namespace shardscope::run
