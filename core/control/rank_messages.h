// SPDX-License-Identifier: Apache-2.0
// What a rank and its supervisor say to each other: one JSON object a line, both ways, over an inherited socket.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace shardscope::control {

/// Supervisor → rank. While the ranks run, rank 0 alone is told and puts the command on a collective. Once every rank
/// has said `paused`, all are told, in the same order.
enum class Command {
    Pause,
    Unpause,
    Checkpoint, ///< write one and go on
    Stop,       ///< write a checkpoint once it is in force, end with exit code 0
    Set         ///< take up a change of the configuration that every rank has been sent before
};
std::string_view toText(Command command);
std::optional<Command> commandFromText(std::string_view text);

/// A command as it travels: a Set says which change it is about.
struct Order
{
    Command command = Command::Pause;
    int64_t change = 0;

    Order(Command ordered, int64_t number = 0) // a command is the order for it
        : command(ordered)
        , change(number)
    {
    }
    bool operator==(const Order &) const = default;
};

/// Supervisor → every rank, before rank 0 is told to Set it: a configuration that will be in force.
struct ConfigurationChange
{
    int64_t number = 0;      ///< counts the changes of an attempt from 1
    std::string origin;      ///< "user", "undo", "sweep": `config.origin` of the recording
    int64_t requestedNs = 0; ///< CLOCK_REALTIME
    std::string text;        ///< "parallel.strategy: full → none"
    std::string changedJson; ///< {"parallel.strategy": {"from": "full", "to": "none"}}
    std::string fullJson;    ///< the whole configuration, as config.json has it
    bool operator==(const ConfigurationChange &) const = default;
};

/// The model is built and the first step is about to begin.
struct ReadyMessage
{
    int64_t pid = 0;
    int64_t firstStep = 0; ///< the number of the step that comes next
    int64_t steps = 0;     ///< how many there will have been at the end
    std::string device;    ///< "cpu", "cuda:0 NVIDIA H200"
};

/// What the recorder of a rank knows of the newest step that it has measured: a device's records come about a second
/// late. As a message of its own: of the last step, once the recording is closed.
struct StepFigures
{
    std::optional<int64_t> peakAllocatedBytes;
    std::optional<int64_t> exposedCommunicationNs;
    std::optional<int64_t> ofNs; ///< duration of the step that they are of, which may be an earlier one
};

/// A step is over. Of this rank, except loss (of the whole global batch).
struct StepMessage
{
    int64_t step = 0; ///< number of the step that ended; the first is 1
    int64_t steps = 0;
    std::optional<double> loss;
    std::optional<double> validationLoss;
    int64_t tokens = 0;
    int64_t stepNs = 0;
    StepFigures figures; ///< of this step where they don't say of which
    int64_t wallNs = 0;  ///< CLOCK_REALTIME at its end
    StepState state = StepState::Ok;
    std::optional<double> lossScale; ///< of fp16, in this step
};

struct PausedMessage
{
    int64_t step = 0; ///< steps done
};

struct RunningMessage
{
    int64_t step = 0;
};

/// A change of the configuration is in force on this rank.
struct ConfiguredMessage
{
    int64_t change = 0;
    int64_t firstStep = 0; ///< the first step under it
};

/// A checkpoint is whole (rank 0 says so).
struct CheckpointMessage
{
    int64_t step = 0;
    std::string path;
    bool ordered = false; ///< it is the one that the command under way asked for, not a periodic one
};

/// Something that a user should read, and no failure.
struct WarningMessage
{
    std::string text;
    bool failedCheckpoint = false; ///< why a checkpoint was not written
    bool ordered = false;          ///< … that a command asked for: whoever gave it gets this text
    bool recording = false;        ///< a part of the recording is lost: state.json keeps saying so
};

/// Why this rank is about to end: for the card of the failed run.
struct FailureMessage
{
    std::string text;
    int exitCode = 1;
    /// It failed in a collective: most likely because another rank had died, whose reason is then the better one.
    bool inCollective = false;
    int64_t wallNs = 0; ///< CLOCK_REALTIME; the earliest failure of a run is its reason
};

using RankMessage = std::variant<ReadyMessage, StepMessage, StepFigures, PausedMessage, RunningMessage,
                                 ConfiguredMessage, CheckpointMessage, WarningMessage, FailureMessage>;

/// One line without its newline.
std::string toLine(const RankMessage &message);
std::string toLine(const Order &order);
std::string toLine(const ConfigurationChange &change);
/// An error says what was wrong with the line; the reader skips it.
Result<RankMessage> messageFromLine(std::string_view line);
/// What a rank reads: an order or the announcement of a change.
Result<std::variant<Order, ConfigurationChange>> orderFromLine(std::string_view line);

} // namespace shardscope::control
