// SPDX-License-Identifier: Apache-2.0
#include "core/train/reconfigure.h"

#include "core/config/configuration_file.h"
#include "core/shapes/unit_plan.h"

#include <nlohmann/json.hpp>

namespace shardscope::train {

static Result<config::RunConfiguration> configurationOf(const control::ConfigurationChange &change)
{
    const auto json = nlohmann::ordered_json::parse(change.fullJson, nullptr, false);
    config::RunConfiguration configuration;
    if (auto applied = config::applyJson(configuration, json, "The new configuration"); !applied)
        return tl::unexpected(applied.error());
    return configuration;
}

Result<config::RunConfiguration> reconfigure(const control::ConfigurationChange &change, int64_t firstStep,
                                             engine::Engine &engine, observe::Observer &observer)
{
    const auto failed = [&](const Error &error) {
        return fail("Change {} of the configuration ({}) can't be taken up: {}", change.number, change.text,
                    error.text);
    };
    auto configuration = configurationOf(change);
    if (!configuration)
        return failed(configuration.error());
    const auto plan = shapes::replanned(engine.plan(), *configuration);
    if (!plan)
        return failed(plan.error());
    engine.reconfigure(*plan);
    observer.configurationChanged({.firstStep = firstStep,
                                   .changedJson = change.changedJson,
                                   .fullJson = change.fullJson,
                                   .origin = change.origin,
                                   .requestedNs = change.requestedNs,
                                   .level = configuration->record.level});
    observer.event(EventKind::Toggle, change.text, change.changedJson, firstStep);
    return configuration;
}

} // namespace shardscope::train
