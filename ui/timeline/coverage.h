// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/span_track.h"

#include <vector>

namespace shardscope::ui::timeline {

/// What one pixel column of a sub-lane holds.
struct Column
{
    Busy busy;
    uint32_t spans = 0; ///< that have a part in it
    uint32_t wide = 0;  ///< those of them that are drawn as rectangles
    bool operator==(const Column &) const = default;
};

/// Spans from this width on are drawn as rectangles, others only as their part of a column.
inline constexpr double kRectanglePx = 3;

/// The columns of a sub-lane for a view of `columns` equal pixel columns over range. Costs a search and at most two
/// partly covered nodes a column, however many spans stand in it.
std::vector<Column> coverageOf(const SpanTrack &track, TimeRange range, int columns);

/// Where column i of `columns` begins; i == columns: the end of range.
int64_t columnStartNs(TimeRange range, int columns, int i);

} // namespace shardscope::ui::timeline
