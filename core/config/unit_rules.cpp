// SPDX-License-Identifier: Apache-2.0
#include "core/config/unit_rules.h"

#include "core/base/text.h"
#include "core/config/value_text.h"

#include <algorithm>
#include <array>

namespace shardscope::config {

/// Names of a rule's settings, and the keys of the run that they set.
static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSettings = {{
    {"strategy", "parallel.strategy"},
    {"shard_group", "parallel.shard_group"},
    {"recompute", "memory.recompute"},
    {"activation_offload", "memory.activation_offload"},
    {"offload_parameters", "offload.parameters"},
    {"offload_gradients", "offload.gradients"},
    {"offload_optimizer", "offload.optimizer"},
    {"prefetch", "parallel.prefetch"},
}};

static std::vector<RuleKey> makeRuleKeys()
{
    std::vector<RuleKey> all = {
        {"match", nullptr, "Pattern of parameter names, as block.*.attention.*; in order, the last rule wins.",
         "text in UTF-8 without control characters"},
        {"kind", nullptr, "Only parameters of this kind.", "one of embedding, linear, norm, bias"},
        {"min_parameters", nullptr, "Only parameters of at least so many elements.", "an integer ≥ 0"},
        {"wrap", nullptr, "What matches is gathered by itself, only while it is used.", "true or false"},
    };
    for (const auto &[name, path] : kSettings) {
        const auto key = std::ranges::find(keys(), path, &Key::path);
        if (key != keys().end())
            all.push_back({name, &*key, {}, {}});
    }
    all.push_back({"ignore", nullptr, "What matches is not sharded, as under none.", "true or false"});
    all.push_back({"frozen", nullptr, "What matches is not trained.", "true or false"});
    return all;
}

std::span<const RuleKey> ruleKeys()
{
    static const std::vector<RuleKey> table = makeRuleKeys();
    return table;
}

Result<const RuleKey *> findRuleKey(std::string_view name)
{
    const auto found = std::ranges::find(ruleKeys(), name, &RuleKey::name);
    if (found != ruleKeys().end())
        return &*found;
    std::vector<std::string> names;
    for (const RuleKey &key : ruleKeys())
        names.emplace_back(key.name);
    if (const auto nearest = nearestName(name, names))
        return fail("Unknown key {} of a [[unit]]. Did you mean {}?", name, *nearest);
    return fail("Unknown key {} of a [[unit]]. There are: {}.", name, fmt::join(names, ", "));
}

/// A text in quotes, other values bare.
static std::string shown(const Value &value)
{
    if (!std::holds_alternative<std::string>(value))
        return textOf(value);
    const std::string text = textOf(value);
    return isPlainText(text) ? fmt::format("\"{}\"", text) : "text that is not UTF-8";
}

static Result<> setOwn(UnitRule &rule, const RuleKey &key, const Value &value)
{
    const auto *text = std::get_if<std::string>(&value);
    const auto *integer = std::get_if<int64_t>(&value);
    const auto *boolean = std::get_if<bool>(&value);
    if (key.name == "match" && text && !text->empty() && isPlainText(*text)) {
        rule.match = *text;
        return {};
    }
    if (key.name == "kind" && text && fromText<ParameterKind>(*text)) {
        rule.kind = fromText<ParameterKind>(*text);
        return {};
    }
    if (key.name == "min_parameters" && integer && *integer >= 0) {
        rule.minParameters = *integer;
        return {};
    }
    if (boolean && key.name == "wrap") {
        rule.wrap = *boolean;
        return {};
    }
    if (boolean && (key.name == "ignore" || key.name == "frozen")) {
        (key.name == "ignore" ? rule.ignore : rule.frozen) = *boolean;
        return {};
    }
    std::string hint;
    if (const std::vector<std::string> kinds(std::begin(Names<ParameterKind>::texts),
                                             std::end(Names<ParameterKind>::texts));
        key.name == "kind" && text) {
        if (const auto nearest = nearestName(*text, kinds))
            hint = fmt::format(" Did you mean {}?", *nearest);
    }
    return fail("{} can't be {}: it takes {}.{}", key.name, shown(value), key.allowed, hint);
}

static ptrdiff_t placeOf(std::string_view path)
{
    return std::ranges::find_if(ruleKeys(), [&](const RuleKey &key) { return key.key && key.key->path == path; }) -
           ruleKeys().begin();
}

/// The message of the run's key, in the name that the rule has for it.
static std::string renamed(const RuleKey &key, std::string message)
{
    if (message.starts_with(key.key->path))
        message.replace(0, key.key->path.size(), key.name);
    return message;
}

Result<> setRuleValue(UnitRule &rule, const RuleKey &key, const Value &value)
{
    if (!key.key)
        return setOwn(rule, key, value);
    RunConfiguration scratch;
    if (auto set = setValue(scratch, *key.key, value); !set)
        return fail("{}", renamed(key, set.error().text));
    const std::string text = textOf(valueOf(scratch, *key.key));
    const auto there = std::ranges::find(rule.settings, key.key->path, &UnitRule::Setting::key);
    if (there != rule.settings.end())
        there->value = text;
    else
        rule.settings.push_back({std::string(key.key->path), text});
    // In one order, however they were named: equal rules compare equal.
    std::ranges::sort(rule.settings, {}, [](const UnitRule::Setting &setting) { return placeOf(setting.key); });
    return {};
}

/// A value of a rule's own key from its text; a text where it is none of another type, for the refusal to show.
static Value ownValueFrom(std::string_view text)
{
    static const auto probe = [](std::string_view path, std::string_view given) {
        return parseValue(*findKey(path).value(), given);
    };
    if (const auto boolean = probe("train.deterministic", text))
        return *boolean;
    if (const auto integer = probe("train.steps", text))
        return *integer;
    return std::string(trimmed(text));
}

static Result<> setRuleAssignment(UnitRule &rule, std::string_view assignment)
{
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos || equals == 0)
        return fail("\"{}\" is no assignment. Write PATTERN:KEY=VALUE, as in 'block.*:strategy=none'.", assignment);
    const auto key = findRuleKey(trimmed(assignment.substr(0, equals)));
    if (!key)
        return tl::unexpected(key.error());
    if ((*key)->name == "match")
        return fail("The pattern stands before the colon: write PATTERN:KEY=VALUE.");
    const std::string_view text = assignment.substr(equals + 1);
    if (!(*key)->key)
        return setRuleValue(rule, **key, ownValueFrom(text));
    const std::optional<Value> value = parseValue(*(*key)->key, text);
    return setRuleValue(rule, **key, value ? *value : std::string(trimmed(text)));
}

Result<UnitRule> ruleFromText(std::string_view text)
{
    // The last colon: patterns may have them, as in [[:alpha:]], and values have none.
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0)
        return fail("\"{}\" is no rule. Write PATTERN:KEY=VALUE, as in 'block.*:strategy=none'.", text);
    UnitRule rule;
    const auto failed = [&](const Error &error) { return fail("--unit '{}': {}", text, error.text); };
    if (auto set = setRuleValue(rule, **findRuleKey("match"), std::string(trimmed(text.substr(0, colon)))); !set)
        return failed(set.error());
    std::string_view rest = text.substr(colon + 1);
    for (size_t comma = 0; comma != std::string_view::npos;) {
        comma = rest.find(',');
        if (auto set = setRuleAssignment(rule, rest.substr(0, comma)); !set)
            return failed(set.error());
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    return rule;
}

std::string textOf(const UnitRule &rule)
{
    std::string text;
    for (const auto &[name, value] : valuesOf(rule)) {
        if (name != "match")
            text += fmt::format("{}{}={}", text.empty() ? ":" : ",", name, textOf(value));
    }
    return rule.match + text;
}

std::vector<std::pair<std::string_view, Value>> valuesOf(const UnitRule &rule)
{
    std::vector<std::pair<std::string_view, Value>> values = {{"match", rule.match}};
    if (rule.kind)
        values.emplace_back("kind", std::string(toText(*rule.kind)));
    if (rule.minParameters > 0)
        values.emplace_back("min_parameters", rule.minParameters);
    if (rule.wrap)
        values.emplace_back("wrap", true);
    for (const RuleKey &key : ruleKeys()) {
        if (!key.key)
            continue;
        const auto setting = std::ranges::find(rule.settings, key.key->path, &UnitRule::Setting::key);
        if (setting == rule.settings.end())
            continue;
        const std::optional<Value> value = parseValue(*key.key, setting->value);
        values.emplace_back(key.name, value ? *value : Value(setting->value));
    }
    if (rule.ignore)
        values.emplace_back("ignore", *rule.ignore);
    if (rule.frozen)
        values.emplace_back("frozen", *rule.frozen);
    return values;
}

Result<> checkRule(const UnitRule &rule)
{
    RunConfiguration scratch;
    for (const UnitRule::Setting &setting : rule.settings) {
        const bool isKnown = std::ranges::any_of(
            ruleKeys(), [&](const RuleKey &key) { return key.key && key.key->path == setting.key; });
        if (!isKnown)
            return fail("A [[unit]] can't set {}.", setting.key);
        if (auto set = setKey(scratch, setting.key, setting.value); !set)
            return fail("[[unit]] \"{}\": {}", rule.match, set.error().text);
    }
    return {};
}

std::string describe(const RuleKey &key)
{
    if (key.key)
        return fmt::format("{}  {} of the run, for what matches: {}.{}", key.name, key.key->path, allowedText(*key.key),
                           key.live() ? " May change while the job runs." : "");
    return fmt::format("{}  {} Takes {}.", key.name, key.help, key.allowed);
}

} // namespace shardscope::config
