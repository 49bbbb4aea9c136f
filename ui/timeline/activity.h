// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/lane.h"

namespace shardscope::ui::timeline {

/// What one rank's device does, as unions: at each moment a thing counts once, however many spans say it. The same
/// arithmetic as the sums of profiler/store (waterfallOf()), kept as tracks, so that any range is answered by a few
/// differences instead of a pass over its spans.
struct Activity
{
    /// Compute counts before communication before copy: a piece of communication here is exposed communication, a piece
    /// of copy an exposed copy, a gap is idle.
    SpanTrack exclusive;
    SpanTrack communication; ///< the union of communication, whatever runs beside it
    SpanTrack copies;        ///< the union of copies, whatever runs beside them

    void eraseStartingIn(TimeRange range);
};

/// Does again what may have changed from timeNs on (INT64_MIN: all). Phase lanes bracket the others and don't count; in
/// threads the innermost span counts.
void updateActivity(Activity &activity, const std::vector<std::shared_ptr<const Lane>> &lanes, int64_t timeNs);

/// How a range of one rank was spent.
struct ActivitySums
{
    int64_t wallNs = 0;
    int64_t computeNs = 0;
    int64_t communicationNs = 0;
    int64_t exposedCommunicationNs = 0;
    int64_t copyNs = 0;
    int64_t exposedCopyNs = 0;
    int64_t idleNs = 0; ///< wall − compute − exposed communication − exposed copy, exactly

    int64_t overlappedCommunicationNs() const { return communicationNs - exposedCommunicationNs; }
    int64_t overlappedCopyNs() const { return copyNs - exposedCopyNs; }
    bool operator==(const ActivitySums &) const = default;
};

ActivitySums sumsOf(const Activity &activity, TimeRange range);

} // namespace shardscope::ui::timeline
