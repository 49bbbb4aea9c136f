// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/evidence.h"

#include "profiler/analysis/compute_intervals.h"

namespace shardscope::analysis {
namespace {

using store::Index;
using store::Interval;
using store::SpanColumns;

const store::StepInfo *worstStep(const RankSteps &rank)
{
    const store::StepInfo *worst = nullptr;
    for (const store::StepInfo &step : rank.steps) {
        if (!rank.isSteady(step) || !step.endNs || !step.sums || !step.spansKept)
            continue;
        if (!worst || step.sums->exposedCommunicationNs > worst->sums->exposedCommunicationNs)
            worst = &step;
    }
    return worst;
}

std::vector<SpanColumns> spansOf(const Input &input, Index process, const store::StepInfo &step)
{
    std::vector<SpanColumns> lanes;
    for (size_t lane = 0; lane < input.catalog->lanes.size(); ++lane) {
        const store::LaneInfo &info = input.catalog->lanes[lane];
        if (info.process != process || info.kind == LaneKind::Phase)
            continue;
        // Evidence is a help: a lane that can't be read now is no reason to have no finding.
        if (auto spans = input.recording.spans(static_cast<Index>(lane), step.startNs, *step.endNs, input.cancel))
            lanes.push_back(std::move(*spans));
    }
    return lanes;
}

std::vector<Interval> computeIn(const store::Catalog &catalog, const std::vector<SpanColumns> &lanes)
{
    std::vector<Interval> compute;
    for (const SpanColumns &lane : lanes)
        appendCompute(lane, catalog.lanes[static_cast<size_t>(lane.lane)].kind, compute);
    return store::uniteIntervals(std::move(compute));
}

} // namespace

Evidence worstExposedCommunication(const Input &input, const RankSteps &rank)
{
    Evidence evidence;
    evidence.attempt = rank.attempt;
    evidence.rank = rank.rank;
    const store::StepInfo *step = worstStep(rank);
    if (!step)
        return evidence;
    evidence.step = step->number;
    evidence.startNs = step->startNs;
    evidence.endNs = step->endNs;
    const auto lanes = spansOf(input, rank.process, *step);
    const auto compute = computeIn(*input.catalog, lanes);
    int64_t longestNs = 0;
    for (const SpanColumns &lane : lanes) {
        for (size_t i = 0; i < lane.size(); ++i) {
            if (lane.category[i] != SpanCategory::Communication || lane.durationNs[i] < 0)
                continue;
            const int64_t endNs = lane.startNs[i] + lane.durationNs[i];
            const int64_t exposedNs = store::uncoveredNs(compute, lane.startNs[i], endNs);
            if (exposedNs <= longestNs)
                continue;
            longestNs = exposedNs;
            evidence.lane = input.catalog->lanes[static_cast<size_t>(lane.lane)].name;
            evidence.unit =
                lane.unit[i] == store::kNone ? "" : input.catalog->units[static_cast<size_t>(lane.unit[i])].name;
            evidence.startNs = lane.startNs[i];
            evidence.endNs = endNs;
        }
    }
    return evidence;
}

} // namespace shardscope::analysis
