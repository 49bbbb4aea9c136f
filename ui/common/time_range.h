// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscope::ui {

/// Nanoseconds since the run's origin_ns, end excluded.
struct TimeRange
{
    int64_t startNs = 0;
    int64_t endNs = 0;

    int64_t durationNs() const { return endNs - startNs; }
    bool isEmpty() const { return endNs <= startNs; }
    bool contains(int64_t timeNs) const { return timeNs >= startNs && timeNs < endNs; }
    bool intersects(const TimeRange &other) const { return startNs < other.endNs && other.startNs < endNs; }
    /// The part of this that is in other; empty where they don't meet.
    TimeRange cutTo(const TimeRange &other) const
    {
        const int64_t start = std::max(startNs, other.startNs);
        return {start, std::max(start, std::min(endNs, other.endNs))};
    }
    bool operator==(const TimeRange &) const = default;
};

} // namespace shardscope::ui
