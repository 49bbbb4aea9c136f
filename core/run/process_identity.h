// SPDX-License-Identifier: Apache-2.0
// Which process a pid in a file means: a pid alone is reused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::run {

/// Start of a process in clock ticks since boot (/proc/<pid>/stat, field 22); nothing where there is no such process.
/// A zombie counts as gone.
std::optional<int64_t> processStartTicks(int64_t pid);
/// What a process is doing, from /proc/<pid>/stat.
struct ProcessUse
{
    bool stopped = false; ///< by a signal or a debugger
    int64_t cpuNs = 0;    ///< of all its threads, in user and system mode
};
/// Nothing where there is no such process. A zombie counts as gone.
std::optional<ProcessUse> processUse(int64_t pid);
/// /proc/sys/kernel/random/boot_id, without the newline; empty where it can't be read.
std::string bootId();

} // namespace shardscope::run
