// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/change_effect.h"

#include "profiler/analysis/rank_test.h"

#include <algorithm>
#include <map>

namespace shardscope::analysis {

namespace {

/// One step of all ranks.
struct StepFigures
{
    int64_t ranks = 0;
    int64_t stepNs = 0;
    std::optional<int64_t> peakBytes = 0;
    std::optional<int64_t> exposedSumNs = 0;
};

/// The steps at which a configuration of this attempt came into force, ascending; the first is the attempt's start.
struct Changes
{
    std::vector<int64_t> firstSteps;
    const store::ConfigInfo *last = nullptr;
};

Changes changesOf(const store::Catalog &catalog, const store::AttemptInfo &attempt)
{
    Changes changes;
    for (const store::ConfigInfo &config : catalog.configs) {
        if (attempt.ranks.empty() || config.process != attempt.ranks.front())
            continue; // they are the same on all ranks
        changes.firstSteps.push_back(config.firstStep);
        if (config.origin != "start" && (!changes.last || config.firstStep >= changes.last->firstStep))
            changes.last = &config;
    }
    std::ranges::sort(changes.firstSteps);
    const auto twice = std::ranges::unique(changes.firstSteps);
    changes.firstSteps.erase(twice.begin(), twice.end());
    return changes;
}

void add(StepFigures &figures, const store::StepInfo &step)
{
    ++figures.ranks;
    figures.stepNs = std::max(figures.stepNs, *step.endNs - step.startNs);
    if (figures.peakBytes && step.peakAllocatedBytes)
        figures.peakBytes = std::max(*figures.peakBytes, *step.peakAllocatedBytes);
    else
        figures.peakBytes.reset();
    if (figures.exposedSumNs && step.sums)
        *figures.exposedSumNs += step.sums->exposedCommunicationNs;
    else
        figures.exposedSumNs.reset();
}

/// Steps from `first` on that every rank has ended, by number.
Result<std::map<int64_t, StepFigures>> readFigures(const store::Recording &recording, const store::AttemptInfo &attempt,
                                                   int64_t first, const store::CancelToken &cancel)
{
    std::map<int64_t, StepFigures> figures;
    for (const store::Index process : attempt.ranks) {
        if (cancel.cancelled())
            return fail("Cancelled.");
        const auto steps = recording.steps(process, first);
        if (!steps)
            return tl::unexpected(steps.error());
        for (const store::StepInfo &step : *steps) {
            if (step.endNs)
                add(figures[step.number], step);
        }
    }
    const auto ranks = static_cast<int64_t>(attempt.ranks.size());
    std::erase_if(figures, [&](const auto &entry) { return entry.second.ranks != ranks; });
    return figures;
}

template <typename Figure>
Effect effectOf(const std::vector<const StepFigures *> &before, const std::vector<const StepFigures *> &after,
                Figure figure)
{
    const auto valuesOf = [&](const std::vector<const StepFigures *> &steps) {
        std::vector<double> values;
        for (const StepFigures *step : steps) {
            if (const std::optional<double> value = figure(*step))
                values.push_back(*value);
        }
        std::ranges::sort(values);
        return values;
    };
    const auto sideOf = [](const std::vector<double> &values) -> std::optional<Side> {
        if (values.size() < kStepsNeeded)
            return std::nullopt;
        return Side{values.size(), quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
    };
    const std::vector<double> then = valuesOf(before);
    const std::vector<double> now = valuesOf(after);
    Effect effect{sideOf(then), sideOf(now), std::nullopt};
    if (effect.before && effect.after)
        effect.p = mannWhitneyP(then, now);
    return effect;
}

std::string sqlOf(int64_t attempt, int64_t first, int64_t last)
{
    return fmt::format("SELECT number, max(end_ns - start_ns) AS step_ns, max(peak_allocated_bytes) AS peak_bytes, "
                       "avg(exposed_communication_ns) AS exposed_ns FROM step JOIN process USING (process_id) "
                       "WHERE attempt = {} AND number BETWEEN {} AND {} GROUP BY number ORDER BY number",
                       attempt, first, last);
}

} // namespace

Result<std::optional<ChangeEffect>> lastChangeEffect(const store::Recording &recording,
                                                     const store::CancelToken &cancel)
{
    const auto catalog = recording.catalog();
    if (!catalog || catalog->attempts.empty())
        return std::nullopt;
    const store::AttemptInfo &attempt = catalog->attempts.back();
    const Changes changes = changesOf(*catalog, attempt);
    if (!changes.last)
        return std::nullopt;
    const int64_t changed = changes.last->firstStep;
    const auto place = std::ranges::find(changes.firstSteps, changed);
    const int64_t beforeFirst = place == changes.firstSteps.begin() ? changed : *std::prev(place) + kSettlingSteps;
    const int64_t from = std::max(beforeFirst, changed - static_cast<int64_t>(kStepsAtMost));
    const auto figures = readFigures(recording, attempt, from, cancel);
    if (!figures)
        return tl::unexpected(figures.error());

    std::vector<const StepFigures *> before, after;
    int64_t last = changed;
    for (const auto &[number, step] : *figures) {
        if (number < changed)
            before.push_back(&step);
        else if (number >= changed + kSettlingSteps && after.size() < kStepsAtMost)
            after.push_back(&step), last = number;
    }
    ChangeEffect effect{.attempt = attempt.attempt,
                        .firstStep = changed,
                        .changedJson = changes.last->changedJson,
                        .origin = changes.last->origin,
                        .stepsAfter = after.size()};
    const auto ranks = static_cast<double>(attempt.ranks.size());
    const auto asDouble = [](const std::optional<int64_t> &value) {
        return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
    };
    effect.stepNs = effectOf(before, after, [&](const StepFigures &s) { return asDouble(s.stepNs); });
    effect.peakBytes = effectOf(before, after, [&](const StepFigures &s) { return asDouble(s.peakBytes); });
    effect.exposedNs = effectOf(before, after, [&](const StepFigures &s) {
        const auto sum = asDouble(s.exposedSumNs);
        return sum ? std::optional(*sum / ranks) : std::nullopt;
    });
    effect.sql = sqlOf(attempt.attempt, from, last);
    return effect;
}

} // namespace shardscope::analysis
