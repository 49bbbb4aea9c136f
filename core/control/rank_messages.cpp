// SPDX-License-Identifier: Apache-2.0
#include "core/control/rank_messages.h"

#include "core/run/json_access.h"

#include <array>

using nlohmann::json;
using shardscope::run::dump;
using shardscope::run::orNull;
using shardscope::run::parseObject;
using shardscope::run::take;

namespace shardscope::control {

static constexpr std::array<std::string_view, 5> kCommands = {"pause", "unpause", "checkpoint", "stop", "set"};

std::string_view toText(Command command)
{
    return kCommands[static_cast<size_t>(command)];
}

std::optional<Command> commandFromText(std::string_view text)
{
    for (size_t i = 0; i < kCommands.size(); ++i) {
        if (kCommands[i] == text)
            return static_cast<Command>(i);
    }
    return std::nullopt;
}

static json toJson(const ReadyMessage &m)
{
    return {{"type", "ready"}, {"pid", m.pid}, {"first_step", m.firstStep}, {"steps", m.steps}, {"device", m.device}};
}

static json toJson(const StepFigures &m)
{
    return {{"type", "figures"},
            {"peak_allocated_bytes", orNull(m.peakAllocatedBytes)},
            {"exposed_communication_ns", orNull(m.exposedCommunicationNs)},
            {"figures_of_ns", orNull(m.ofNs)}};
}

static json toJson(const StepMessage &m)
{
    json object = toJson(m.figures);
    object.update({{"type", "step"},
                   {"step", m.step},
                   {"steps", m.steps},
                   {"loss", orNull(m.loss)},
                   {"validation_loss", orNull(m.validationLoss)},
                   {"tokens", m.tokens},
                   {"step_ns", m.stepNs},
                   {"wall_ns", m.wallNs},
                   {"state", toText(m.state)},
                   {"loss_scale", orNull(m.lossScale)}});
    return object;
}

static json toJson(const PausedMessage &m)
{
    return {{"type", "paused"}, {"step", m.step}};
}

static json toJson(const RunningMessage &m)
{
    return {{"type", "running"}, {"step", m.step}};
}

static json toJson(const ConfiguredMessage &m)
{
    return {{"type", "configured"}, {"change", m.change}, {"first_step", m.firstStep}};
}

static json toJson(const CheckpointMessage &m)
{
    return {{"type", "checkpoint"}, {"step", m.step}, {"path", m.path}, {"ordered", m.ordered}};
}

static json toJson(const WarningMessage &m)
{
    return {{"type", "warning"},
            {"text", m.text},
            {"failed_checkpoint", m.failedCheckpoint},
            {"ordered", m.ordered},
            {"recording", m.recording}};
}

static json toJson(const FailureMessage &m)
{
    return {{"type", "failure"},
            {"text", m.text},
            {"exit_code", m.exitCode},
            {"in_collective", m.inCollective},
            {"wall_ns", m.wallNs}};
}

std::string toLine(const RankMessage &message)
{
    return dump(std::visit([](const auto &m) { return toJson(m); }, message));
}

std::string toLine(const Order &order)
{
    json line = {{"command", toText(order.command)}};
    if (order.command == Command::Set)
        line["change"] = order.change;
    return dump(line);
}

std::string toLine(const ConfigurationChange &change)
{
    // The texts of JSON travel as texts: a rank hands them on as they are, and their keys keep their order.
    return dump({{"configuration", change.fullJson},
                 {"change", change.number},
                 {"origin", change.origin},
                 {"requested_ns", change.requestedNs},
                 {"text", change.text},
                 {"changed", change.changedJson}});
}

static StepFigures figuresFromJson(const json &object)
{
    StepFigures m;
    take(object, "peak_allocated_bytes", m.peakAllocatedBytes);
    take(object, "exposed_communication_ns", m.exposedCommunicationNs);
    take(object, "figures_of_ns", m.ofNs);
    return m;
}

static StepMessage stepFromJson(const json &object)
{
    StepMessage m;
    take(object, "step", m.step);
    take(object, "steps", m.steps);
    take(object, "loss", m.loss);
    take(object, "validation_loss", m.validationLoss);
    take(object, "tokens", m.tokens);
    take(object, "step_ns", m.stepNs);
    m.figures = figuresFromJson(object);
    take(object, "wall_ns", m.wallNs);
    take(object, "loss_scale", m.lossScale);
    std::string state;
    take(object, "state", state);
    m.state = fromText<StepState>(state).value_or(m.state);
    return m;
}

static ReadyMessage readyFromJson(const json &object)
{
    ReadyMessage m;
    take(object, "pid", m.pid);
    take(object, "first_step", m.firstStep);
    take(object, "steps", m.steps);
    take(object, "device", m.device);
    return m;
}

Result<RankMessage> messageFromLine(std::string_view line)
{
    const auto object = parseObject(line, "A rank's message");
    if (!object)
        return tl::unexpected(object.error());
    std::string type;
    std::string text;
    int64_t step = 0;
    take(*object, "type", type);
    take(*object, "text", text);
    take(*object, "step", step);
    if (type == "ready")
        return readyFromJson(*object);
    if (type == "step")
        return stepFromJson(*object);
    if (type == "figures")
        return figuresFromJson(*object);
    if (type == "paused")
        return PausedMessage{step};
    if (type == "running")
        return RunningMessage{step};
    if (type == "configured") {
        ConfiguredMessage m;
        take(*object, "change", m.change);
        take(*object, "first_step", m.firstStep);
        return m;
    }
    if (type == "warning") {
        WarningMessage m{text};
        take(*object, "failed_checkpoint", m.failedCheckpoint);
        take(*object, "ordered", m.ordered);
        take(*object, "recording", m.recording);
        return m;
    }
    if (type == "checkpoint") {
        CheckpointMessage m{step, {}};
        take(*object, "path", m.path);
        take(*object, "ordered", m.ordered);
        return m;
    }
    if (type == "failure") {
        FailureMessage m{text, 1};
        take(*object, "exit_code", m.exitCode);
        take(*object, "in_collective", m.inCollective);
        take(*object, "wall_ns", m.wallNs);
        return m;
    }
    return fail("A rank's message of the unknown type \"{}\".", type);
}

Result<std::variant<Order, ConfigurationChange>> orderFromLine(std::string_view line)
{
    const auto object = parseObject(line, "A command");
    if (!object)
        return tl::unexpected(object.error());
    if (object->contains("configuration")) {
        ConfigurationChange change;
        take(*object, "configuration", change.fullJson);
        take(*object, "change", change.number);
        take(*object, "origin", change.origin);
        take(*object, "requested_ns", change.requestedNs);
        take(*object, "text", change.text);
        take(*object, "changed", change.changedJson);
        return change;
    }
    std::string text;
    int64_t change = 0;
    take(*object, "command", text);
    take(*object, "change", change);
    if (const auto command = commandFromText(text))
        return Order(*command, change);
    return fail("The unknown command \"{}\".", text);
}

} // namespace shardscope::control
