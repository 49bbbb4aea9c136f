// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::collect {

/// "AMD EPYC 7543 32-Core Processor", from /proc/cpuinfo; "CPU" where that is silent.
std::string processorName();
std::optional<int64_t> physicalMemoryBytes();
/// Resident bytes of this process.
std::optional<int64_t> residentBytes();
/// Nanoseconds of processor time that this process has used, over all threads.
int64_t processorTimeNs();
std::string hostName();

} // namespace shardscope::collect
