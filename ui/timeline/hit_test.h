// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/row_layout.h"
#include "ui/timeline/time_axis.h"

namespace shardscope::ui::timeline {

/// What stands under a point.
struct Hit
{
    SpanRef span;       ///< of several under one pixel, the longest
    uint64_t count = 1; ///< how many spans that pixel holds
};

/// x in pixels of the axis, y in pixels of the layout's content. Narrow spans are found up to two pixels beside.
std::optional<Hit> hitTest(const Snapshot &snapshot, const RowLayout &layout, const TimeAxis &axis, double x, int y);

/// The span before (forward: after) this one with the same name in its lane.
std::optional<SpanRef> neighbour(const Snapshot &snapshot, const SpanRef &from, bool forward);

} // namespace shardscope::ui::timeline
