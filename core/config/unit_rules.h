// SPDX-License-Identifier: Apache-2.0
// The keys of [[unit]]: in TOML and JSON, in --unit, in --help and in forms. Which parameters a rule is about, and what
// it sets for them, is in UnitRule; whether rules fit a model is core/shapes' to say (planOf()).
#pragma once

#include "core/config/registry.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::config {

/// A key of a rule: one of its own ("match"), or one that sets a key of the run for what it matches ("strategy").
struct RuleKey
{
    std::string_view name;    ///< "offload_parameters"
    const Key *key = nullptr; ///< of the run; null: the rule's own
    std::string_view help;    ///< one sentence; of the rule's own keys
    std::string_view allowed; ///< "true or false"; of the rule's own keys

    /// Chooses parameters: such a key is no setting.
    bool selects() const { return name == "match" || name == "kind" || name == "min_parameters"; }
    /// It may be set while the job runs.
    bool live() const { return key && key->live; }
};

/// In the order in which files show them. A key is here when the run's key of it works.
std::span<const RuleKey> ruleKeys();
/// The key of that name, or a message with the nearest right one.
Result<const RuleKey *> findRuleKey(std::string_view name);

/// Type and range are checked as setValue() does.
Result<> setRuleValue(UnitRule &rule, const RuleKey &key, const Value &value);
/// "PATTERN:KEY=VALUE", or several of them for one pattern: "block.*:kind=norm,strategy=none".
Result<UnitRule> ruleFromText(std::string_view text);
/// A rule as ruleFromText() reads it; its pattern alone where it sets nothing.
std::string textOf(const UnitRule &rule);

/// What a rule says, by name: the pattern always, of the others what is set.
std::vector<std::pair<std::string_view, Value>> valuesOf(const UnitRule &rule);

/// A rule that was put together without setRuleValue(): every setting is a key that rules may set, with a right value.
Result<> checkRule(const UnitRule &rule);

/// The key's lines of --help.
std::string describe(const RuleKey &key);

} // namespace shardscope::config
