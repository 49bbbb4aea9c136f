// SPDX-License-Identifier: Apache-2.0
// The part of nvml.h that is used here, as NVIDIA's driver has had it since version 510.
#pragma once

namespace shardscope::collect::nvml {

using Device = void *;
inline constexpr int kSuccess = 0;
inline constexpr int kTemperatureGpu = 0;
inline constexpr int kClockSm = 1;
inline constexpr int kPcieTx = 0;
inline constexpr int kPcieRx = 1;
inline constexpr unsigned long long kNotAvailable = ~0ull;

struct Utilization
{
    unsigned gpuPercent = 0;
    unsigned memoryPercent = 0;
};

struct Memory
{
    unsigned long long total = 0;
    unsigned long long free = 0;
    unsigned long long used = 0;
};

struct ProcessInfo
{
    unsigned pid = 0;
    unsigned long long usedBytes = 0;
    unsigned gpuInstance = 0;
    unsigned computeInstance = 0;
};

} // namespace shardscope::collect::nvml
