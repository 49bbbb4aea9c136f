// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/analysis.h"

#include "profiler/analysis/summaries.h"

#include <algorithm>

namespace shardscope::analysis {
namespace {

std::optional<size_t> slowestRank(const std::vector<RankSummary> &ranks)
{
    std::optional<size_t> slowest;
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i].all.sums && (!slowest || ranks[i].all.sums->wallNs > ranks[*slowest].all.sums->wallNs))
            slowest = i;
    }
    return slowest;
}

} // namespace

Result<Input> readInput(const store::Recording &recording, const store::CancelToken &cancel)
{
    Input input{recording, recording.catalog(), {}, {}, cancel};
    for (const store::AttemptInfo &attempt : input.catalog->attempts) {
        for (const store::Index process : attempt.ranks) {
            auto steps = recording.steps(process);
            if (!steps)
                return tl::unexpected(steps.error());
            input.ranks.push_back({process, attempt.attempt,
                                   *input.catalog->processes[static_cast<size_t>(process)].rank, std::move(*steps), 0});
        }
    }
    findWarmUps(input);
    return input;
}

Result<Analysis> analyze(const store::Recording &recording, const store::CancelToken &cancel)
{
    const auto input = readInput(recording, cancel);
    if (!input)
        return tl::unexpected(input.error());
    Analysis analysis;
    analysis.source = input->catalog->source;
    analysis.complete = input->catalog->complete;
    analysis.originNs = input->catalog->originNs;
    for (const store::ProcessInfo &process : input->catalog->processes)
        analysis.clockUncertaintyNs = std::max(analysis.clockUncertaintyNs, process.clockUncertaintyNs);
    analysis.attempts = summarizeAttempts(*input);
    analysis.steps = summarizeSteps(*input);
    analysis.validation = validationPoints(*input);
    auto ranks = summarizeRanks(*input);
    if (!ranks)
        return tl::unexpected(ranks.error());
    analysis.ranks = std::move(*ranks);
    analysis.slowest = slowestRank(analysis.ranks);
    analysis.waitedFor = findWaitedFor(analysis);
    auto collectives = summarizeCollectives(*input);
    if (!collectives)
        return tl::unexpected(collectives.error());
    analysis.collectives = std::move(*collectives);
    analysis.findings = findCauses(*input, analysis);
    return analysis;
}

} // namespace shardscope::analysis
