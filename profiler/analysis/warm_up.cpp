// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/summaries.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::analysis {
namespace {

/// Finished steps of a rank, and those of them after a step.
struct Ended
{
    size_t all = 0;
    size_t later = 0;
};

Ended endedSteps(const RankSteps &rank, int64_t first)
{
    Ended ended;
    for (const store::StepInfo &step : rank.steps) {
        ended.all += step.endNs.has_value();
        ended.later += step.endNs.has_value() && step.number > first;
    }
    return ended;
}

WarmUp warmUpOf(const Input &input, int64_t attempt)
{
    std::optional<int64_t> first;
    for (const RankSteps &rank : input.ranks) {
        if (rank.attempt == attempt && !rank.steps.empty())
            first = std::min(first.value_or(rank.steps.front().number), rank.steps.front().number);
    }
    if (!first)
        return {};
    if (input.catalog->source != "shardscope" && input.catalog->source != "injection")
        return {{}, "recorded by another tool: rates, shares and findings are of all steps"};
    for (const RankSteps &rank : input.ranks) {
        const Ended ended = rank.attempt == attempt ? endedSteps(rank, *first) : Ended();
        if (ended.all > 0 && ended.later < kSteadySteps)
            return {{}, "rates, shares and findings are of all steps: too few to leave out the first as warm-up"};
    }
    return {{*first}, fmt::format("rates, shares and findings leave out step {} as warm-up", *first)};
}

} // namespace

std::string RankSteps::steadySql() const
{
    return firstSteady > 0 ? fmt::format(" AND s.number >= {}", firstSteady) : "";
}

void findWarmUps(Input &input)
{
    for (const store::AttemptInfo &attempt : input.catalog->attempts)
        input.warmUps[attempt.attempt] = warmUpOf(input, attempt.attempt);
    for (RankSteps &rank : input.ranks) {
        const std::vector<int64_t> &steps = input.warmUps[rank.attempt].steps;
        rank.firstSteady = steps.empty() ? 0 : steps.back() + 1;
    }
}

} // namespace shardscope::analysis
