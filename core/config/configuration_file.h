// SPDX-License-Identifier: Apache-2.0
// Configurations in files: TOML that people write, JSON that runs keep (attempt-K/config.json).
#pragma once

#include "core/base/result.h"
#include "core/config/run_configuration.h"

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace shardscope::config {

/// Sets what a TOML text names and leaves the rest; its [[unit]] take the place of those before. All its mistakes are
/// in the message, one a line, each with source:line:column.
Result<> applyToml(RunConfiguration &configuration, std::string_view text, std::string_view source);

/// {"run": {"name": …}, …, "unit": [{"match": …}, …]}: every key, in the registry's order; of a rule what it sets.
nlohmann::ordered_json toJson(const RunConfiguration &configuration);
/// Sets what the object names and leaves the rest; a list of rules takes the place of the one before. All mistakes are
/// in the message, one a line.
Result<> applyJson(RunConfiguration &configuration, const nlohmann::ordered_json &json, std::string_view source);

/// The defaults with what the file says: JSON where its name ends in .json, else TOML.
Result<RunConfiguration> readConfiguration(const std::filesystem::path &path);
Result<> applyFile(RunConfiguration &configuration, const std::filesystem::path &path);
/// What toJson() gave, as a file for people to read too; whole or not at all.
Result<> writeConfiguration(const std::filesystem::path &path, const nlohmann::ordered_json &json);

} // namespace shardscope::config
