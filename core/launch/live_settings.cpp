// SPDX-License-Identifier: Apache-2.0
#include "core/launch/live_settings.h"

#include "core/base/clock.h"
#include "core/config/configuration_file.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shardscope::launch {

LiveSettings::LiveSettings(config::RunConfiguration start, Admit admit)
    : m_accepted(std::move(start))
    , m_admit(std::move(admit))
    , m_startRules(m_accepted.units.size())
{
}

std::optional<control::ConfigurationChange> LiveSettings::accept(config::RunConfiguration next, std::string origin)
{
    const auto changed = config::differences(m_accepted, next);
    m_accepted = std::move(next);
    if (changed.empty())
        return std::nullopt;
    return control::ConfigurationChange{.number = ++m_number,
                                        .origin = std::move(origin),
                                        .requestedNs = realtimeNs(),
                                        .text = config::textOf(changed),
                                        .changedJson = config::toJson(changed).dump(),
                                        .fullJson = config::toJson(m_accepted).dump()};
}

Result<config::RunConfiguration> LiveSettings::admitted(const config::LiveRequest &request,
                                                        std::optional<int64_t> peakAllocatedBytes) const
{
    auto next = config::withChanges(m_accepted, request, m_startRules);
    if (next && m_admit)
        next = m_admit({*next, m_accepted, peakAllocatedBytes, request.force});
    return next;
}

bool LiveSettings::isForcible(config::LiveRequest request, std::optional<int64_t> peakAllocatedBytes) const
{
    if (std::exchange(request.force, true))
        return false;
    return admitted(request, peakAllocatedBytes).has_value();
}

Result<std::optional<control::ConfigurationChange>> LiveSettings::set(const config::LiveRequest &request,
                                                                      std::optional<int64_t> peakAllocatedBytes)
{
    auto next = admitted(request, peakAllocatedBytes);
    if (!next)
        return tl::unexpected(next.error());
    config::RunConfiguration before = m_accepted;
    auto change = accept(std::move(*next), "user");
    if (change)
        m_before.push_back(std::move(before));
    return change;
}

Result<std::optional<control::ConfigurationChange>> LiveSettings::undo(std::optional<int64_t> peakAllocatedBytes)
{
    if (m_before.empty())
        return fail("Nothing has been set since this attempt started: there is nothing to undo.");
    if (m_admit) {
        if (auto can = m_admit({m_before.back(), m_accepted, peakAllocatedBytes, true}); !can)
            return tl::unexpected(can.error());
    }
    config::RunConfiguration next = std::move(m_before.back());
    m_before.pop_back();
    return accept(std::move(next), "undo");
}

nlohmann::json LiveSettings::describe() const
{
    nlohmann::json undo = nullptr;
    if (!m_before.empty())
        undo = config::toJson(config::differences(m_accepted, m_before.back()));
    return {{"configuration", config::toJson(m_accepted)}, {"start_rules", m_startRules}, {"undo", std::move(undo)}};
}

Result<> applyInForce(config::RunConfiguration &configuration, const run::RunFolder &folder)
{
    const int attempt = folder.lastTrainedAttempt();
    std::error_code error;
    auto applied = config::applyFile(configuration, folder.configFile(attempt));
    if (applied && std::filesystem::exists(folder.inForceFile(attempt), error))
        applied = config::applyFile(configuration, folder.inForceFile(attempt));
    return applied;
}

} // namespace shardscope::launch
