// SPDX-License-Identifier: Apache-2.0
// The control socket of a run: lines of JSON. A client sends {"version":1,"id":7,"command":"pause"} and gets one line
// with the same id once the command is in force (or refused): {"version":1,"id":7,"ok":true,"result":{…}}. A client
// that subscribed gets {"version":1,"event":"step"|"state"|"message","data":{…}} in between.
#pragma once

#include "core/base/result.h"
#include "core/config/live_change.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::control {

inline constexpr int kProtocolVersion = 1;

/// What a client can ask of a supervisor, in the order of kRequestNames.
enum class RequestKind {
    Status,     ///< result: the content of state.json
    Subscribe,  ///< events follow from now on
    Pause,      ///< answered when every rank is paused; result: step
    Unpause,    ///< answered when every rank runs again
    Checkpoint, ///< answered when it is whole; result: step, path
    Stop,       ///< checkpoint and end once it is in force; answered when the run has ended
    StopNow,    ///< end at once, without a checkpoint; answered when the run has ended
    Set,        ///< change live keys; answered when in force on every rank: changed {key: {from, to}}, step (the first
                ///< one under it; null where nothing changes)
    Undo,       ///< go back to the configuration before the last change; answered as Set
    Configuration ///< what was asked for last: configuration, start_rules, undo (what Undo would change; null: nothing)
};
std::string_view toText(RequestKind kind);

struct Request
{
    int64_t id = 0;
    RequestKind kind = RequestKind::Status;
    config::LiveRequest live = {}; ///< of Set
};

struct Reply
{
    int64_t id = 0;
    bool ok = true;
    std::string error; ///< for a user; empty where ok
    nlohmann::json result = nlohmann::json::object();
    bool refused = false;  ///< not ok, and nothing was done: what was asked for can't be
    bool forcible = false; ///< refused for the memory alone: the same with force is carried out
};

struct Event
{
    std::string name; ///< "step", "state" or "message"
    nlohmann::json data = nlohmann::json::object();
};

std::string toLine(const Request &request);
std::string toLine(const Reply &reply);
std::string toLine(const Event &event);
/// The error of a line that is no request; `id` is the line's id as far as it could be read (the reply carries it).
struct BadRequest
{
    int64_t id = 0;
    std::string text;
};
tl::expected<Request, BadRequest> requestFromLine(std::string_view line);

/// What a client reads: a reply or an event.
struct Incoming
{
    std::optional<Reply> reply;
    std::optional<Event> event;
};
Result<Incoming> incomingFromLine(std::string_view line);

} // namespace shardscope::control
