// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "ui/timeline/snapshot.h"

#include "profiler/store/cancel.h"

namespace shardscope::ui::timeline {

/// Where the time of a range went, by rank, and the spans that took most of it. Spans at the ends of the range count
/// with their part in it.
struct RangeSummary
{
    struct Rank
    {
        uint32_t rank = 0; ///< in the snapshot
        std::string label;
        ActivitySums sums;
    };
    /// All spans of one name, lane kind and category.
    struct Total
    {
        std::string name;
        SpanCategory category = SpanCategory::Compute;
        LaneKind kind = LaneKind::Stream;
        uint64_t count = 0;
        int64_t totalNs = 0;
        int64_t selfNs = 0; ///< without the spans nested in them
        int64_t longestNs = 0;
    };
    std::shared_ptr<const Snapshot> snapshot;
    TimeRange range;
    std::vector<Rank> ranks;
    std::vector<Total> totals; ///< by totalNs, descending
};

/// ranks: of the snapshot, which count; empty: all. Runs on the reader's thread.
Result<std::shared_ptr<const RangeSummary>> summarize(std::shared_ptr<const Snapshot> snapshot, TimeRange range,
                                                      const std::vector<int> &globalRanks,
                                                      const store::CancelToken &cancel);

} // namespace shardscope::ui::timeline
