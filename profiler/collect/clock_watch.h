// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace shardscope::collect {

/// CLOCK_REALTIME and CLOCK_MONOTONIC at the same moment.
struct ClockPair
{
    int64_t realtimeNs = 0;
    int64_t monotonicNs = 0;
    int64_t uncertaintyNs = 0; ///< the moment is known to this

    static ClockPair now();
};

/// Watches the wall clock against the monotonic one: someone who sets it moves every later start.
class ClockWatch
{
public:
    static constexpr int64_t kPeriodNs = 10'000'000'000;
    /// NTP slews by at most 500 ppm, 5 ms in a period; more is a jump.
    static constexpr int64_t kJumpNs = 20'000'000;

    bool due(int64_t monotonicNs) const { return !m_last || monotonicNs - m_last->monotonicNs >= kPeriodNs; }
    /// By how much the wall clock jumped since the last pair, where it did.
    std::optional<int64_t> take(const ClockPair &pair);

private:
    std::optional<ClockPair> m_last;
};

} // namespace shardscope::collect
