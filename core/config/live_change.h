// SPDX-License-Identifier: Apache-2.0
// What `set` does to the configuration of a running job, before anybody is told of it.
#pragma once

#include "core/config/run_configuration.h"

#include "core/base/result.h"

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::config {

/// As its user wrote it.
struct LiveRequest
{
    std::vector<std::string> assignments; ///< KEY=VALUE
    std::vector<std::string> rules;       ///< PATTERN:KEY=VALUE
    bool force = false;                   ///< also where it is predicted to need more memory than there is
};

/// The configuration in force with what is asked for. The first `startRules` rules made the buckets and stay; a rule
/// for the same parameters as one that was set before takes its place. The learning rate takes its final rate along:
/// the schedule keeps its shape. All refusals are in the message, one a line: keys that are unknown, wrong, or fixed
/// for as long as the run goes on. Whether the result can run is checkRun()'s to say.
Result<RunConfiguration> withChanges(const RunConfiguration &inForce, const LiveRequest &request, size_t startRules);

/// A key whose value changed, in the texts that setKey() reads. "unit 'block.*': strategy" is a rule's: where a side
/// has no such rule, its text is the run's own value.
struct Difference
{
    std::string key;
    std::string from;
    std::string to;
    bool operator==(const Difference &) const = default;
};

/// Empty where the two are the same.
std::vector<Difference> differences(const RunConfiguration &from, const RunConfiguration &to);
/// {"parallel.strategy": {"from": "full", "to": "none"}}
nlohmann::ordered_json toJson(const std::vector<Difference> &differences);
/// What toJson() wrote, as text; empty where it is no such object.
std::vector<Difference> differencesIn(std::string_view json);
/// "parallel.strategy: full → none"; an empty list of rules is "none".
std::string textOf(const Difference &difference);
/// "parallel.strategy: full → none, optimizer.clip_norm: 1 → 0"
std::string textOf(const std::vector<Difference> &differences);

} // namespace shardscope::config
