// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardscope {

/// Nanoseconds of CLOCK_REALTIME since the epoch: the start of every record.
int64_t realtimeNs();

/// Nanoseconds of CLOCK_MONOTONIC: every duration is a difference of two of these.
int64_t monotonicNs();

} // namespace shardscope
