// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/toggles/toggle_values.h"

#include "core/config/unit_rules.h"
#include "core/shapes/unit_plan.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <ranges>

namespace shardscope::ui {

static bool isBlock(const std::string &unit)
{
    return unit.starts_with("block.");
}

std::vector<const config::Key *> liveKeysFor(const Units &units)
{
    std::vector<const config::Key *> keys;
    if (units.empty()) {
        for (const config::Key &key : config::keys()) {
            if (key.live)
                keys.push_back(&key);
        }
        return keys;
    }
    const bool areBlocks = std::ranges::all_of(units, isBlock);
    for (const config::RuleKey &key : config::ruleKeys()) {
        if (key.live() && (areBlocks || !shapes::isOfBlocks(key.key->path)))
            keys.push_back(key.key);
    }
    return keys;
}

/// A rule is about a whole unit where its pattern is: rules for parts of a unit (norms of a block, say) are shown by
/// the recording's buckets, not here.
static bool coversUnit(const config::UnitRule &rule, const std::string &unit)
{
    return !rule.kind && rule.minParameters == 0 && fnmatch(rule.match.c_str(), (unit + ".x").c_str(), 0) == 0;
}

static std::string valueFor(const config::RunConfiguration &configuration, const config::Key &key,
                            const std::string &unit)
{
    std::string text = config::textOf(config::valueOf(configuration, key));
    for (const config::UnitRule &rule : configuration.units) {
        const auto setting = std::ranges::find(rule.settings, key.path, &config::UnitRule::Setting::key);
        if (setting != rule.settings.end() && coversUnit(rule, unit))
            text = setting->value;
    }
    return text;
}

std::map<std::string, std::optional<std::string>> liveValues(const config::RunConfiguration &configuration,
                                                             const Units &units)
{
    std::map<std::string, std::optional<std::string>> values;
    for (const config::Key *key : liveKeysFor(units)) {
        std::optional<std::string> &value = values[std::string(key->path)];
        if (units.empty()) {
            value = config::textOf(config::valueOf(configuration, *key));
            continue;
        }
        value = valueFor(configuration, *key, units.front());
        const bool differ = std::ranges::any_of(
            units, [&](const std::string &unit) { return valueFor(configuration, *key, unit) != *value; });
        if (differ)
            value.reset();
    }
    return values;
}

std::vector<std::string> patternsOf(const Units &units, const Units &all)
{
    std::vector<std::string> patterns;
    const auto chosen = std::ranges::count_if(units, isBlock);
    const bool allBlocks = chosen > 1 && chosen == std::ranges::count_if(all, isBlock);
    if (allBlocks)
        patterns.emplace_back("block.*");
    for (const std::string &unit : units) {
        if (!allBlocks || !isBlock(unit))
            patterns.push_back(unit + ".*");
    }
    return patterns;
}

config::LiveRequest requestFor(const std::map<std::string, std::string> &texts, const Units &units, const Units &all)
{
    config::LiveRequest request;
    if (units.empty()) {
        for (const auto &[path, text] : texts)
            request.assignments.push_back(path + "=" + text);
        return request;
    }
    std::vector<std::string> settings;
    for (const config::RuleKey &key : config::ruleKeys()) {
        const auto text = key.key ? texts.find(std::string(key.key->path)) : texts.end();
        if (text != texts.end())
            settings.push_back(fmt::format("{}={}", key.name, text->second));
    }
    for (const std::string &pattern : patternsOf(units, all)) {
        if (!settings.empty())
            request.rules.push_back(fmt::format("{}:{}", pattern, fmt::join(settings, ",")));
    }
    return request;
}

} // namespace shardscope::ui
