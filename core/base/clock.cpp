// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"

#include <ctime>

namespace shardscope {

static int64_t readNs(clockid_t id)
{
    timespec time{};
    clock_gettime(id, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t realtimeNs()
{
    return readNs(CLOCK_REALTIME);
}

int64_t monotonicNs()
{
    return readNs(CLOCK_MONOTONIC);
}

} // namespace shardscope
