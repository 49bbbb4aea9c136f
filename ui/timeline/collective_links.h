// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/snapshot.h"

namespace shardscope::ui::timeline {

/// The spans of one collective call, one for each rank that has it: on its stream (or, on a CPU, the lane where the
/// transfer stands). In the order of the ranks.
std::vector<SpanRef> linkedSpans(const Snapshot &snapshot, const store::CollectiveCall &call);

/// The part of a collective's span in which it only waited for the last rank to arrive; empty where that is not known.
TimeRange waitOf(const SpanRecord &record, const store::CollectiveCall &call);

/// Algorithm and bus bandwidth as nccl-tests define them, of the transfer (from the last rank's start on).
struct Bandwidth
{
    double algorithmBytesPerSecond = 0;
    double busBytesPerSecond = 0;
};
std::optional<Bandwidth> bandwidthOf(const store::CollectiveCall &call);

} // namespace shardscope::ui::timeline
