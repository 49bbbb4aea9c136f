// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/check.h"
#include "core/plan/room_check.h"

namespace shardscope::cli {

/// What each rank of a running job has, where `peakBytes` is what one holds at its peak: of the device with the least
/// that is free for each of its ranks, or of the host. memory.cap_bytes is obeyed.
plan::Room roomOf(const config::ResolvedRun &run, const config::MachineFacts &machine, int64_t peakBytes);

/// What a rank could have at most: its part of a device, or of the machine.
int64_t capacityOf(const config::ResolvedRun &run, const config::MachineFacts &machine);

} // namespace shardscope::cli
