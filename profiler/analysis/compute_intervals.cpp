// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/compute_intervals.h"

namespace shardscope::analysis {

void appendCompute(const store::SpanColumns &spans, LaneKind kind, std::vector<store::Interval> &compute)
{
    std::vector<store::TimedSpan> timed;
    timed.reserve(spans.size());
    for (size_t i = 0; i < spans.size(); ++i) {
        if (spans.durationNs[i] >= 0)
            timed.push_back({spans.startNs[i], spans.startNs[i] + spans.durationNs[i], spans.category[i]});
    }
    if (kind == LaneKind::Thread)
        timed = store::innermostPieces(std::move(timed));
    for (const store::TimedSpan &span : timed) {
        if (span.category == SpanCategory::Compute)
            compute.push_back({span.startNs, span.endNs});
    }
}

} // namespace shardscope::analysis
