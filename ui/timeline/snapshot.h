// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "profiler/store/snapshot.h"
#include "ui/timeline/activity.h"
#include "ui/timeline/deleted_steps.h"

#include <memory>
#include <string_view>
#include <unordered_map>

namespace shardscope::ui::timeline {

/// One rank of one attempt.
struct RankTimeline
{
    store::Index process = store::kNone;
    int64_t attempt = 1;
    std::optional<int64_t> rank; ///< empty: an imported process without one
    std::vector<std::shared_ptr<const Lane>> lanes;
    std::shared_ptr<const Activity> activity;
    std::shared_ptr<const std::vector<store::StepInfo>> steps;
    /// The place in Snapshot::collectives of each of the process's collective ids.
    std::shared_ptr<const std::unordered_map<int32_t, uint32_t>> callOf;
};

/// Which span of a snapshot; valid for that snapshot alone.
struct SpanRef
{
    uint32_t rank = 0;
    uint32_t lane = 0;
    uint32_t track = 0;
    SpanPosition position;
    bool operator==(const SpanRef &) const = default;
};

/// All that the timeline shows of a recording at one moment. Made on the reader's thread, never changed afterwards;
/// the next one of a live recording shares what stayed the same.
struct Snapshot
{
    std::shared_ptr<const store::Catalog> catalog;
    std::vector<RankTimeline> ranks;
    std::shared_ptr<const std::vector<store::CollectiveCall>> collectives;
    TimeRange extent;
    /// Where nothing is to be seen for want of spans; ascending, apart from each other.
    std::vector<DeletedSteps> deleted;
    /// The newest stretch without such steps: what is worth looking at first.
    TimeRange newest;
    uint64_t spans = 0;
    std::vector<int64_t> seenFlushes; ///< what Recording::tail() takes next time

    const Lane &lane(const SpanRef &ref) const { return *ranks[ref.rank].lanes[ref.lane]; }
    const SpanTrack &track(const SpanRef &ref) const { return lane(ref).tracks()[ref.track]; }
    SpanRecord record(const SpanRef &ref) const { return track(ref).record(ref.position); }
    std::string_view nameOf(int32_t name) const;
    std::string_view unitOf(int32_t unit) const;
    /// The collective that a span of this rank belongs to.
    const store::CollectiveCall *callOf(uint32_t rank, int32_t collective) const;
    /// The span in another snapshot of the same recording, if it is still there.
    std::optional<SpanRef> find(const Snapshot &old, const SpanRef &ref) const;
    size_t sizeBytes() const;
};

/// "rank 3", "attempt 2, rank 3" where there are several attempts, else the process's command.
std::string labelOf(const Snapshot &snapshot, const RankTimeline &rank);

} // namespace shardscope::ui::timeline
