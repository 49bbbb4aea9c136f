// SPDX-License-Identifier: Apache-2.0
// Where a step's time went. All times are unions of intervals, never sums of overlapping spans: at every nanosecond of
// the step exactly one part of the waterfall counts. Used where a step is finished (the sums then outlive its spans)
// and where a range of the timeline is brushed.
#pragma once

#include "core/base/names.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::store {

/// A span as far as the sums care. Spans with a lane that nests (a host thread, whose inner calls lie within outer
/// ones) count by the innermost span at each moment: a wait inside a forward pass is not compute. Spans of streams all
/// count as they are. The spans of phase lanes are brackets round these and must not be handed over.
struct TimedSpan
{
    int64_t startNs = 0;
    int64_t endNs = 0;
    SpanCategory category = SpanCategory::Compute;
    std::optional<Phase> phase;
    std::optional<Operation> operation; ///< of a span that belongs to a collective
    int64_t laneId = 0;
    bool nests = false;
};

/// Nanoseconds; each invariant holds exactly:
///   computeNs + exposedCommunicationNs + exposedCopyNs + idleNs == wallNs
///   communicationNs == overlappedCommunicationNs + exposedCommunicationNs
///   exposedAllGatherNs + exposedReduceScatterNs + exposedAllReduceNs + exposedOtherCommunicationNs ==
///   exposedCommunicationNs
///   idleHostNs + idlePeerNs + idleOtherNs == idleNs
/// The waterfall's compute is computeNs − optimizerNs.
struct StepSums
{
    int64_t wallNs = 0;
    int64_t computeNs = 0;       ///< the optimizer's part included
    int64_t communicationNs = 0; ///< the union of communication, whatever runs beside it
    int64_t overlappedCommunicationNs = 0;
    int64_t exposedCommunicationNs = 0; ///< no compute beside it
    int64_t copyNs = 0;                 ///< the union of copies, whatever runs beside them
    int64_t exposedCopyNs = 0;          ///< neither compute nor communication beside it
    int64_t idleNs = 0;
    int64_t exposedAllGatherNs = 0;
    int64_t exposedReduceScatterNs = 0;
    int64_t exposedAllReduceNs = 0;
    int64_t exposedOtherCommunicationNs = 0;
    int64_t optimizerNs = 0; ///< compute of the optimizer phase with no other compute beside it
    int64_t idleHostNs = 0;  ///< nothing on the device, a host span is open
    int64_t idlePeerNs = 0;  ///< nothing on the device, an idle span of a collective is open: a peer is late
    int64_t idleOtherNs = 0;

    bool operator==(const StepSums &) const = default;
    StepSums &operator+=(const StepSums &other);
    /// communication ÷ (compute + communication + copy); empty where all are 0.
    std::optional<double> communicationShareOfDeviceTime() const;
    /// exposed communication ÷ wall; empty where wall is 0.
    std::optional<double> exposedCommunicationShare() const;
    /// In collectives, with nothing else going on: exposed communication + idle while a peer is late. A transfer takes
    /// all of its ranks as long, so what one rank has more of this than another it has waited for it.
    int64_t bareCollectivesNs() const { return exposedCommunicationNs + idlePeerNs; }
};

/// The sums of [startNs, endNs). Spans may stand in any order and stick out at both ends. Where several things run at
/// once, compute counts before communication before copy; of two collectives the one with the earlier operation in
/// {all-gather, reduce-scatter, all-reduce, other}. O(n log n).
StepSums waterfallOf(std::span<const TimedSpan> spans, int64_t startNs, int64_t endNs);

/// Splits the spans of one nesting lane into pieces that do not overlap, each of the innermost span at its time.
std::vector<TimedSpan> innermostPieces(std::vector<TimedSpan> lane);

/// Half-open intervals, sorted and disjoint after uniteIntervals().
struct Interval
{
    int64_t startNs = 0;
    int64_t endNs = 0;
    bool operator==(const Interval &) const = default;
};
std::vector<Interval> uniteIntervals(std::vector<Interval> intervals);
/// The length of [startNs, endNs) that none of the united intervals covers.
int64_t uncoveredNs(std::span<const Interval> united, int64_t startNs, int64_t endNs);

} // namespace shardscope::store
