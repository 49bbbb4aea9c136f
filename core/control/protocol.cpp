// SPDX-License-Identifier: Apache-2.0
#include "core/control/protocol.h"

#include "core/run/json_access.h"

#include <array>

using nlohmann::json;
using shardscope::run::dump;
using shardscope::run::parseObject;
using shardscope::run::take;

namespace shardscope::control {

static constexpr std::array<std::string_view, 10> kRequestNames = {
    "status", "subscribe", "pause", "unpause", "checkpoint", "stop", "stop_now", "set", "undo", "configuration"};

std::string_view toText(RequestKind kind)
{
    return kRequestNames[static_cast<size_t>(kind)];
}

std::string toLine(const Request &request)
{
    json line = {{"version", kProtocolVersion}, {"id", request.id}, {"command", toText(request.kind)}};
    if (request.kind == RequestKind::Set) {
        line["set"] = request.live.assignments;
        line["unit"] = request.live.rules;
        if (request.live.force)
            line["force"] = true;
    }
    return dump(line);
}

std::string toLine(const Reply &reply)
{
    json line = {{"version", kProtocolVersion}, {"id", reply.id}, {"ok", reply.ok}};
    if (reply.ok)
        line["result"] = reply.result;
    else
        line["error"] = reply.error;
    if (reply.refused)
        line["refused"] = true;
    if (reply.forcible)
        line["forcible"] = true;
    return dump(line);
}

std::string toLine(const Event &event)
{
    return dump({{"version", kProtocolVersion}, {"event", event.name}, {"data", event.data}});
}

static std::vector<std::string> textsOf(const json &object, const char *key)
{
    std::vector<std::string> texts;
    const auto list = object.find(key);
    for (const json &each : list != object.end() && list->is_array() ? *list : json::array()) {
        if (each.is_string())
            texts.push_back(each.get<std::string>());
    }
    return texts;
}

tl::expected<Request, BadRequest> requestFromLine(std::string_view line)
{
    const auto object = parseObject(line, "The request");
    if (!object)
        return tl::unexpected(BadRequest{0, object.error().text});
    Request request;
    int64_t version = 0;
    std::string command;
    take(*object, "id", request.id);
    take(*object, "version", version);
    take(*object, "command", command);
    if (version != kProtocolVersion)
        return tl::unexpected(BadRequest{request.id, fmt::format("This run speaks version {} of the control protocol, "
                                                                 "the request is of version {}.",
                                                                 kProtocolVersion, version)});
    for (size_t i = 0; i < kRequestNames.size(); ++i) {
        if (kRequestNames[i] == command) {
            request.kind = static_cast<RequestKind>(i);
            request.live = {textsOf(*object, "set"), textsOf(*object, "unit")};
            take(*object, "force", request.live.force);
            return request;
        }
    }
    return tl::unexpected(BadRequest{request.id, fmt::format("The unknown command \"{}\".", command)});
}

Result<Incoming> incomingFromLine(std::string_view line)
{
    auto object = parseObject(line, "The supervisor's line");
    if (!object)
        return tl::unexpected(object.error());
    Incoming incoming;
    if (object->contains("event")) {
        Event &event = incoming.event.emplace();
        take(*object, "event", event.name);
        event.data = object->value("data", json::object());
        return incoming;
    }
    Reply &reply = incoming.reply.emplace();
    take(*object, "id", reply.id);
    take(*object, "ok", reply.ok);
    take(*object, "error", reply.error);
    take(*object, "refused", reply.refused);
    take(*object, "forcible", reply.forcible);
    reply.result = object->value("result", json::object());
    return incoming;
}

} // namespace shardscope::control
