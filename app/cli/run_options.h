// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/output.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::cli {

/// What `run` was called with, as texts: the registry of keys says whether they are right.
struct RunOptions
{
    std::string configuration; ///< CONFIG.toml; empty: none
    /// --preset, --ranks, … as (key, text), in the order of the command line's documentation.
    std::vector<std::pair<std::string, std::string>> keys;
    std::vector<std::string> assignments; ///< --set KEY=VALUE; after the others
    std::vector<std::string> rules;       ///< --unit PATTERN:KEY=VALUE; after those of files
    std::string out;                      ///< empty: a new folder in the runs directory
    std::string resume;                   ///< a run; empty: a new one
    Format format = Format::Text;
};

} // namespace shardscope::cli
