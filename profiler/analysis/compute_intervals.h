// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/store/interval_sums.h"
#include "profiler/store/snapshot.h"

#include <vector>

namespace shardscope::analysis {

/// Appends the times at which a lane computes. In a thread the innermost span counts: a wait inside a forward pass is
/// not compute. Spans that are still open are left out.
void appendCompute(const store::SpanColumns &spans, LaneKind kind, std::vector<store::Interval> &compute);

} // namespace shardscope::analysis
