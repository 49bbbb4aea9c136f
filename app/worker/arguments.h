// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace shardscope::worker {

struct Arguments
{
    std::filesystem::path configuration;  ///< TOML or JSON
    std::vector<std::string> assignments; ///< KEY=VALUE of --set
    std::vector<std::string> rules;       ///< PATTERN:KEY=VALUE of --unit
    std::filesystem::path out;
    bool resume = false;
    std::vector<std::string> commandLine;
};

/// What to print and leave, for --help and --version.
struct Information
{
    std::string text;
};

Result<std::variant<Arguments, Information>> parseArguments(int argc, char **argv);

} // namespace shardscope::worker
