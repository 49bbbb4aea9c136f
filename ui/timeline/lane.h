// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/span_track.h"

#include <string>
#include <vector>

namespace shardscope::ui::timeline {

/// A lane of one rank: a phase lane, a CUDA stream, a CPU thread. Overlapping and nested spans stand in sub-lanes: each
/// span in the first one that is free at its start, so that nothing hides anything.
class Lane
{
public:
    struct Info
    {
        int64_t laneId = 0; ///< of its database
        std::string name;
        LaneKind kind = LaneKind::Thread;
        int64_t sortOrder = 0;
    };

    Lane() = default;
    explicit Lane(Info info)
        : info(std::move(info))
    {
    }

    Info info;
    /// Start of the first span that had not ended when it was read; a live reader reads again from there.
    int64_t openFromNs = INT64_MAX;

    const std::vector<SpanTrack> &tracks() const { return m_tracks; }
    uint64_t spanCount() const;
    TimeRange extent() const;
    size_t sizeBytes() const;
    /// Sums over the sub-lanes: where spans nest, more than the range's own length.
    Busy busyIn(TimeRange range) const;

    /// Takes spans sorted by start (of equal starts the longer first), none before the last one taken.
    void append(std::span<const SpanRecord> records);
    /// Forgets the spans that begin in range. To go on with append() after this, range must reach to the end.
    void eraseStartingIn(TimeRange range);

private:
    std::vector<SpanTrack> m_tracks;
};

/// The order that Lane::append() wants.
bool comesBefore(const SpanRecord &a, const SpanRecord &b);

} // namespace shardscope::ui::timeline
