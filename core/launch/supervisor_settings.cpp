// SPDX-License-Identifier: Apache-2.0
// The supervisor's part in `set`: what changes the configuration of a running job.
#include "core/config/configuration_file.h"
#include "core/launch/supervisor.h"
#include "core/run/json_access.h"

using nlohmann::json;
using shardscope::control::Command;
using shardscope::control::Order;
using shardscope::control::RequestKind;

namespace shardscope::launch {

void Supervisor::on(int rank, const control::ConfiguredMessage &message)
{
    m_commands.rankConfigured(rank, message.change, message.firstStep);
}

void Supervisor::keepInForce(const nlohmann::ordered_json &configuration)
{
    m_isInForceKept = true;
    const auto written = config::writeConfiguration(m_plan.folder.inForceFile(m_plan.attempt), configuration);
    if (!written)
        tell(fmt::format("A resumed run would not know of the settings that are in force now: {}",
                         written.error().text));
}

/// Set and Undo. What can't be is refused before anybody hears of it.
void Supervisor::configure(qint64 client, const control::Request &request)
{
    const auto reply = [this, client, id = request.id](const json &result) {
        m_server.reply(client, {.id = id, .result = result});
    };
    const auto refuse = [this, client, id = request.id](const std::string &why, bool forcible = false) {
        m_server.reply(client, {.id = id, .ok = false, .error = why, .refused = true, .forcible = forcible});
    };
    if (m_commands.stopping())
        return refuse("The run is stopping.");
    const bool isUndo = request.kind == RequestKind::Undo;
    const auto change = isUndo ? m_settings.undo(m_status.peakAllocatedBytes)
                               : m_settings.set(request.live, m_status.peakAllocatedBytes);
    if (!change)
        return refuse(change.error().text, !isUndo && m_settings.isForcible(request.live, m_status.peakAllocatedBytes));
    if (!*change)
        return reply({{"step", nullptr}, {"changed", json::object()}, {"text", ""}});
    m_changes.emplace((*change)->number, **change);
    m_observer.event(EventKind::Command, fmt::format("{} {}", toText(request.kind), (*change)->text),
                     run::dump({{"asker", "control socket"}, {"step", run::orNull(m_status.step)}}));
    m_commands.add(Order(Command::Set, (*change)->number), [this, client, reply, id = request.id,
                                                            number = (*change)->number](const Result<json> &result) {
        const control::ConfigurationChange set = m_changes.extract(number).mapped();
        if (!result)
            return m_server.reply(client, {.id = id, .ok = false, .error = result.error().text});
        keepInForce(nlohmann::ordered_json::parse(set.fullJson));
        tell(fmt::format("From step {}: {}", result->at("step").get<int64_t>(), set.text));
        reply({{"step", result->at("step")}, {"changed", json::parse(set.changedJson)}, {"text", set.text}});
    });
}

} // namespace shardscope::launch
