// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/clock_watch.h"

#include "core/base/clock.h"

#include <cstdlib>

namespace shardscope::collect {

ClockPair ClockPair::now()
{
    // Of a few tries the one that was disturbed least.
    ClockPair best{0, 0, INT64_MAX};
    for (int i = 0; i < 5; ++i) {
        const int64_t before = shardscope::monotonicNs();
        const int64_t realtime = shardscope::realtimeNs();
        const int64_t after = shardscope::monotonicNs();
        if (after - before < best.uncertaintyNs)
            best = {realtime, before + (after - before) / 2, after - before};
    }
    return best;
}

std::optional<int64_t> ClockWatch::take(const ClockPair &pair)
{
    std::optional<int64_t> jump;
    if (m_last) {
        const int64_t drift = (pair.realtimeNs - m_last->realtimeNs) - (pair.monotonicNs - m_last->monotonicNs);
        // A machine that was suspended for an hour has slewed for an hour: the limit grows with the time between.
        const int64_t limit = kJumpNs + (pair.monotonicNs - m_last->monotonicNs) / 2000;
        if (std::llabs(drift) > limit)
            jump = drift;
    }
    m_last = pair;
    return jump;
}

} // namespace shardscope::collect
