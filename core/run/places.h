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
/// $XDG_RUNTIME_DIR/shardscope, or (without that variable, or where its folder is gone) /tmp/shardscope-<uid>. Makes
/// it.
Result<std::filesystem::path> runtimeDirectory();
/// /tmp/shardscope-<uid>; not made yet.
std::filesystem::path fallbackRuntimeDirectory();
/// Makes a folder with mode 0700. Refuses one that somebody else owns, or that is a link.
Result<> makePrivateFolder(const std::filesystem::path &folder);

} // namespace shardscope::run
