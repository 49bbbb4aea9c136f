// SPDX-License-Identifier: Apache-2.0
#include "core/config/live_change.h"

#include "core/config/configuration_file.h"
#include "core/config/registry.h"
#include "core/config/unit_rules.h"
#include "core/config/value_text.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace shardscope::config {

static Result<> setLiveKey(RunConfiguration &configuration, std::string_view assignment)
{
    const std::string_view path = trimmed(assignment.substr(0, assignment.find('=')));
    if (const auto key = findKey(path); key && !(*key)->live)
        return fail("{} is fixed while a run goes on. Stop the run and go on with it by: run --resume RUN --set {}",
                    path, assignment);
    return setAssignment(configuration, assignment);
}

static bool isAboutTheSame(const UnitRule &a, const UnitRule &b)
{
    return a.match == b.match && a.kind == b.kind && a.minParameters == b.minParameters;
}

/// The new rule is the last, so it wins: what an earlier one says of the same keys and parameters can go.
static void dropOvershadowed(std::vector<UnitRule> &rules, size_t startRules, const UnitRule &by)
{
    for (size_t i = startRules; i < rules.size(); ++i) {
        if (!isAboutTheSame(rules[i], by))
            continue;
        std::erase_if(rules[i].settings, [&](const UnitRule::Setting &setting) {
            return std::ranges::find(by.settings, setting.key, &UnitRule::Setting::key) != by.settings.end();
        });
    }
    const auto first = rules.begin() + static_cast<ptrdiff_t>(std::min(startRules, rules.size()));
    rules.erase(std::remove_if(first, rules.end(), [](const UnitRule &rule) { return rule.settings.empty(); }),
                rules.end());
}

static Result<> addLiveRule(RunConfiguration &configuration, const std::string &text, size_t startRules)
{
    auto rule = ruleFromText(text);
    if (!rule)
        return tl::unexpected(rule.error());
    for (const auto &[name, value] : valuesOf(*rule)) {
        const RuleKey *key = *findRuleKey(name);
        if (!key->selects() && !key->live())
            return fail("{} of a [[unit]] is fixed while a run goes on: buckets are made when it starts. Stop the run "
                        "and go on with it by: run --resume RUN --unit '{}'",
                        name, text);
    }
    if (rule->settings.empty())
        return fail("--unit '{}' sets nothing: it only chooses.", text);
    dropOvershadowed(configuration.units, startRules, *rule);
    configuration.units.push_back(std::move(*rule));
    return {};
}

Result<RunConfiguration> withChanges(const RunConfiguration &inForce, const LiveRequest &request, size_t startRules)
{
    RunConfiguration changed = inForce;
    std::vector<std::string> refusals;
    for (const std::string &assignment : request.assignments) {
        if (const auto set = setLiveKey(changed, assignment); !set)
            refusals.push_back(set.error().text);
    }
    for (const std::string &text : request.rules) {
        if (const auto added = addLiveRule(changed, text, startRules); !added)
            refusals.push_back(added.error().text);
    }
    if (!refusals.empty())
        return fail("{}", fmt::join(refusals, "\n"));
    if (changed.optimizer.learningRate != inForce.optimizer.learningRate && inForce.optimizer.minLearningRate > 0)
        changed.optimizer.minLearningRate =
            inForce.optimizer.minLearningRate * (changed.optimizer.learningRate / inForce.optimizer.learningRate);
    return changed;
}

namespace {

/// What rules set, by "unit 'block.*': strategy": the path of the run's key, and the text.
using RuleValues = std::map<std::string, std::pair<std::string, std::string>>;

RuleValues ruleValues(const RunConfiguration &configuration)
{
    RuleValues values;
    for (const UnitRule &rule : configuration.units) {
        UnitRule selector = rule;
        selector.settings.clear();
        selector.wrap = false;
        selector.ignore = selector.frozen = std::nullopt;
        for (const UnitRule::Setting &setting : rule.settings) {
            const auto key = std::ranges::find_if(
                ruleKeys(), [&](const RuleKey &each) { return each.key && each.key->path == setting.key; });
            const std::string name = key == ruleKeys().end() ? setting.key : std::string(key->name);
            values[fmt::format("unit '{}': {}", textOf(selector), name)] = {setting.key, setting.value};
        }
    }
    return values;
}

/// What a rule sets, else the run's own value.
std::string textIn(const RunConfiguration &configuration, const RuleValues &values, const std::string &name,
                   const std::string &path)
{
    if (const auto found = values.find(name); found != values.end())
        return found->second.second;
    const auto key = findKey(path);
    return key ? textOf(valueOf(configuration, **key)) : std::string();
}

std::string listOf(const std::vector<UnitRule> &rules)
{
    std::vector<std::string> texts;
    for (const UnitRule &rule : rules)
        texts.push_back(textOf(rule));
    return fmt::format("{}", fmt::join(texts, "; "));
}

} // namespace

std::vector<Difference> differences(const RunConfiguration &from, const RunConfiguration &to)
{
    std::vector<Difference> all;
    for (const Key &key : keys()) {
        const Value before = valueOf(from, key);
        const Value after = valueOf(to, key);
        if (before != after)
            all.push_back({std::string(key.path), textOf(before), textOf(after)});
    }
    const RuleValues before = ruleValues(from);
    const RuleValues after = ruleValues(to);
    RuleValues either = before;
    either.insert(after.begin(), after.end());
    const size_t ofKeys = all.size();
    for (const auto &[name, setting] : either) {
        const std::string was = textIn(from, before, name, setting.first);
        const std::string is = textIn(to, after, name, setting.first);
        if (was != is)
            all.push_back({name, was, is});
    }
    // Another order of the same rules, or one that pins what was so already.
    if (all.size() == ofKeys && from.units != to.units)
        all.push_back({"unit", listOf(from.units), listOf(to.units)});
    return all;
}

nlohmann::ordered_json toJson(const std::vector<Difference> &differences)
{
    auto json = nlohmann::ordered_json::object();
    for (const Difference &each : differences)
        json[each.key] = {{"from", each.from}, {"to", each.to}};
    return json;
}

std::vector<Difference> differencesIn(std::string_view json)
{
    const auto changed = nlohmann::ordered_json::parse(json, nullptr, false);
    std::vector<Difference> all;
    if (!changed.is_object())
        return all;
    for (const auto &[key, change] : changed.items()) {
        if (change.is_object())
            all.push_back({key, change.value("from", ""), change.value("to", "")});
    }
    return all;
}

std::string textOf(const Difference &difference)
{
    const auto shown = [](const std::string &value) { return value.empty() ? "none" : value; };
    return fmt::format("{}: {} → {}", difference.key, shown(difference.from), shown(difference.to));
}

std::string textOf(const std::vector<Difference> &differences)
{
    std::vector<std::string> texts;
    for (const Difference &each : differences)
        texts.push_back(textOf(each));
    return fmt::format("{}", fmt::join(texts, ", "));
}

} // namespace shardscope::config
