// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace shardscope::test {

/// What in value is not as a JSON schema says; empty where all is. Knows the words that analyze.schema.json uses (type,
/// properties, required, items, enum, const, minimum, maximum, anyOf, $ref into $defs) and reports any other.
std::vector<std::string> schemaErrors(const nlohmann::json &schema, const nlohmann::json &value);

} // namespace shardscope::test
