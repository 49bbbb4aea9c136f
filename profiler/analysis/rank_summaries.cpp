// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/summaries.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shardscope::analysis {
namespace {

std::optional<int64_t> durationOf(const store::StepInfo &step)
{
    return step.endNs ? std::optional<int64_t>(*step.endNs - step.startNs) : std::nullopt;
}

/// The device that a rank computes on.
const store::DeviceInfo *deviceOf(const store::Catalog &catalog, store::Index process)
{
    for (const store::DeviceInfo &device : catalog.devices) {
        if (device.process == process)
            return &device;
    }
    return nullptr;
}

/// Of the finished steps from a number on.
RankFigures figuresOf(const Input &input, const RankSteps &rank, int64_t firstStep)
{
    RankFigures figures;
    std::vector<int64_t> durationsNs;
    int64_t tokens = 0;
    int64_t tokenNs = 0; // of the steps whose tokens are known
    for (const store::StepInfo &step : rank.steps) {
        const auto durationNs = durationOf(step);
        if (!durationNs || step.number < firstStep)
            continue;
        durationsNs.push_back(*durationNs);
        if (step.tokens) {
            tokens += *step.tokens;
            tokenNs += *durationNs;
        }
        if (step.sums) {
            figures.sums = figures.sums.value_or(store::StepSums()) += *step.sums;
            ++figures.timedSteps;
        }
    }
    figures.steps = static_cast<int64_t>(durationsNs.size());
    if (!durationsNs.empty()) {
        std::sort(durationsNs.begin(), durationsNs.end());
        figures.stepMedianNs = percentile(durationsNs, 0.5);
        figures.stepP99Ns = percentile(durationsNs, 0.99);
    }
    if (tokenNs > 0)
        figures.tokensPerSecond = static_cast<double>(tokens) * 1e9 / static_cast<double>(tokenNs);
    const store::DeviceInfo *device = deviceOf(*input.catalog, rank.process);
    const auto flopsPerToken = input.catalog->processes[static_cast<size_t>(rank.process)].modelFlopsPerToken;
    if (device && figures.tokensPerSecond && flopsPerToken && device->peakFlops && *device->peakFlops > 0)
        figures.mfu = *figures.tokensPerSecond * *flopsPerToken / *device->peakFlops;
    return figures;
}

Result<> fillPeak(const Input &input, const RankSteps &rank, RankSummary &summary)
{
    std::optional<int64_t> peakStep;
    for (const store::StepInfo &step : rank.steps) {
        if (step.endNs && step.peakAllocatedBytes && step.peakAllocatedBytes > summary.peakAllocatedBytes) {
            summary.peakAllocatedBytes = step.peakAllocatedBytes;
            peakStep = step.number;
        }
    }
    const auto peak = input.recording.memoryPeak(rank.process, peakStep);
    if (!peak)
        return tl::unexpected(peak.error());
    if (!*peak)
        return {};
    // The sample at the peak is the measurement; the step's figure is a copy of it.
    summary.peakAllocatedBytes = (*peak)->allocatedBytes;
    auto &bytes = summary.memoryAtPeakBytes.emplace();
    std::copy((*peak)->categoryBytes.begin(), (*peak)->categoryBytes.end(), bytes.begin());
    bytes.back() = (*peak)->roundingBytes;
    return {};
}

} // namespace

int64_t percentile(const std::vector<int64_t> &sorted, double share)
{
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

Result<std::vector<RankSummary>> summarizeRanks(const Input &input)
{
    std::vector<RankSummary> summaries;
    for (const RankSteps &rank : input.ranks) {
        RankSummary summary;
        summary.attempt = rank.attempt;
        summary.rank = rank.rank;
        if (const store::DeviceInfo *device = deviceOf(*input.catalog, rank.process))
            summary.device = device->name;
        summary.all = figuresOf(input, rank, 0);
        summary.steady = figuresOf(input, rank, rank.firstSteady);
        summary.droppedRecords = input.catalog->processes[static_cast<size_t>(rank.process)].droppedRecords;
        if (auto filled = fillPeak(input, rank, summary); !filled)
            return tl::unexpected(filled.error());
        summaries.push_back(std::move(summary));
    }
    return summaries;
}

std::vector<AttemptSummary> summarizeAttempts(const Input &input)
{
    std::vector<AttemptSummary> summaries;
    for (const store::AttemptInfo &attempt : input.catalog->attempts) {
        AttemptSummary summary{attempt.attempt,  attempt.worldSize, attempt.missingRanks, {}, {}, {}, {},
                               attempt.endReason};
        if (const auto warmUp = input.warmUps.find(attempt.attempt); warmUp != input.warmUps.end()) {
            summary.warmUpSteps = warmUp->second.steps;
            summary.warmUpNote = warmUp->second.note;
        }
        for (const RankSteps &rank : input.ranks) {
            if (rank.attempt != attempt.attempt)
                continue;
            for (const store::StepInfo &step : rank.steps) {
                summary.firstStep = std::min(summary.firstStep.value_or(step.number), step.number);
                summary.lastStep = std::max(summary.lastStep.value_or(step.number), step.number);
                if (!step.spansKept || step.level == RecordLevel::Off)
                    continue;
                summary.firstRecordedStep = std::min(summary.firstRecordedStep.value_or(step.number), step.number);
                summary.lastRecordedStep = std::max(summary.lastRecordedStep.value_or(step.number), step.number);
            }
        }
        summaries.push_back(std::move(summary));
    }
    return summaries;
}

/// A sum over the ranks is one only where all of them are in it.
static void dropPartialTokens(const Input &input, const std::map<std::pair<int64_t, int64_t>, int64_t> &counted,
                              std::map<std::pair<int64_t, int64_t>, StepSummary> &steps)
{
    for (auto &[key, summary] : steps) {
        const auto &attempts = input.catalog->attempts;
        const auto attempt = std::find_if(attempts.begin(), attempts.end(),
                                          [&](const auto &one) { return one.attempt == summary.attempt; });
        const auto count = counted.find(key);
        if (attempt == attempts.end() || count == counted.end() || count->second < attempt->worldSize)
            summary.tokens.reset();
    }
}

std::vector<StepSummary> summarizeSteps(const Input &input)
{
    std::map<std::pair<int64_t, int64_t>, StepSummary> steps;
    std::map<std::pair<int64_t, int64_t>, int64_t> counted; ///< ranks whose tokens are in the sum
    for (const RankSteps &rank : input.ranks) {
        for (const store::StepInfo &step : rank.steps) {
            StepSummary &summary = steps[{rank.attempt, step.number}];
            summary.attempt = rank.attempt;
            summary.step = step.number;
            // Loss, norm and rate are those of all ranks: any rank's will do, the lowest one's comes first.
            if (!summary.config && step.config != store::kNone)
                summary.config = input.catalog->configs[static_cast<size_t>(step.config)].configId;
            if (!summary.state || (step.state && *step.state != StepState::Ok))
                summary.state = step.state;
            summary.loss = summary.loss ? summary.loss : step.loss;
            summary.gradientNorm = summary.gradientNorm ? summary.gradientNorm : step.gradientNorm;
            summary.learningRate = summary.learningRate ? summary.learningRate : step.learningRate;
            if (step.tokens) {
                summary.tokens = summary.tokens.value_or(0) + *step.tokens;
                ++counted[{rank.attempt, step.number}];
            }
            if (const auto durationNs = durationOf(step))
                summary.durationNs = std::max(summary.durationNs.value_or(0), *durationNs);
        }
    }
    dropPartialTokens(input, counted, steps);
    std::vector<StepSummary> list;
    for (auto &[key, summary] : steps)
        list.push_back(std::move(summary));
    return list;
}

std::vector<ValidationPoint> validationPoints(const Input &input)
{
    std::map<std::pair<int64_t, int64_t>, double> losses;
    for (const RankSteps &rank : input.ranks) {
        for (const store::StepInfo &step : rank.steps) {
            if (step.validationLoss)
                losses.try_emplace({rank.attempt, step.number}, *step.validationLoss);
        }
    }
    std::vector<ValidationPoint> points;
    for (const auto &[key, loss] : losses)
        points.push_back({key.first, key.second, loss});
    return points;
}

} // namespace shardscope::analysis
