// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace shardscope::launch {

/// The last lines of a log (at most `lines`, and at most 8 KiB), without trailing blank lines; empty where there are
/// none.
std::string logTail(const std::filesystem::path &log, int lines);

} // namespace shardscope::launch
