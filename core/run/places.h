// SPDX-License-Identifier: Apache-2.0
// Where this user's files are, after the XDG base directory specification. Relative values of the variables are
// ignored, as it says.
#pragma once

#include "core/base/result.h"

#include <filesystem>

namespace shardscope::run {

/// $XDG_DATA_HOME/shardscope/runs, or ~/.local/share/shardscope/runs.
std::filesystem::path defaultRunsDirectory();
/// $XDG_CACHE_HOME/shardscope, or ~/.cache/shardscope.
std::filesystem::path cacheDirectory();
/// $XDG_CONFIG_HOME/shardscope, or ~/.config/shardscope.
std::filesystem::path configDirectory();
/// $XDG_RUNTIME_DIR/shardscope, or /tmp/shardscope-<uid>: made with mode 0700. Refuses one that others own or may
/// enter.
Result<std::filesystem::path> runtimeDirectory();

} // namespace shardscope::run
