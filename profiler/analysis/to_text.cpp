// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"
#include "profiler/analysis/analysis.h"
#include "profiler/analysis/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardscope::analysis {
namespace {

constexpr size_t kCollectivesShown = 20;
constexpr const char *kUnknown = "–";

std::string durationText(std::optional<int64_t> ns)
{
    return ns ? formatDuration(*ns) : kUnknown;
}

std::string meanText(std::optional<double> ns)
{
    return ns ? formatDuration(static_cast<int64_t>(*ns)) : kUnknown;
}

std::string bytesText(std::optional<int64_t> bytes)
{
    return bytes ? formatBytes(*bytes) : kUnknown;
}

std::string percentText(std::optional<double> share)
{
    return share ? fmt::format("{:.1f} %", *share * 100) : kUnknown;
}

std::string rateText(std::optional<double> bytesPerSecond)
{
    return bytesPerSecond ? formatBytes(static_cast<int64_t>(*bytesPerSecond)) + "/s" : kUnknown;
}

std::string attemptsText(const Analysis &analysis)
{
    std::string text = "Attempts\n";
    for (const AttemptSummary &attempt : analysis.attempts) {
        text +=
            fmt::format("  {}: {} {}", attempt.attempt, attempt.worldSize, attempt.worldSize == 1 ? "rank" : "ranks");
        if (attempt.firstStep)
            text += fmt::format(", steps {} to {}", *attempt.firstStep, *attempt.lastStep);
        if (attempt.firstRecordedStep)
            text += fmt::format(" (spans of {} to {})", *attempt.firstRecordedStep, *attempt.lastRecordedStep);
        if (!attempt.missingRanks.empty())
            text += fmt::format(", missing: rank {}", fmt::join(attempt.missingRanks, ", "));
        text += fmt::format(", {}\n", attempt.endReason);
        if (!attempt.warmUpNote.empty())
            text += fmt::format("     {}\n", attempt.warmUpNote);
    }
    return text;
}

std::string lossText(const Analysis &analysis)
{
    const auto hasLoss = [](const StepSummary &step) { return step.loss.has_value(); };
    const auto first = std::find_if(analysis.steps.begin(), analysis.steps.end(), hasLoss);
    if (first == analysis.steps.end())
        return {};
    const auto last = std::find_if(analysis.steps.rbegin(), analysis.steps.rend(), hasLoss);
    std::string text =
        fmt::format("Loss\n  {:.4f} at step {}, {:.4f} at step {}", *first->loss, first->step, *last->loss, last->step);
    if (!analysis.validation.empty())
        text += fmt::format(", validation {:.4f} at step {}", analysis.validation.back().loss,
                            analysis.validation.back().step);
    return text + "\n";
}

/// "5 of 6": without warm-up.
std::string stepsText(const RankSummary &rank)
{
    return rank.steady.steps == rank.all.steps ? fmt::format("{}", rank.all.steps)
                                               : fmt::format("{} of {}", rank.steady.steps, rank.all.steps);
}

std::string ranksText(const Analysis &analysis)
{
    TextTable table(
        {"attempt", "rank", "device", "steps", "median step", "p99", "tokens/s", "MFU", "peak memory", "dropped"}, 3);
    for (const RankSummary &rank : analysis.ranks) {
        const RankFigures &steady = rank.steady;
        table.add({fmt::format("{}", rank.attempt), fmt::format("{}", rank.rank),
                   rank.device.empty() ? kUnknown : rank.device, stepsText(rank), durationText(steady.stepMedianNs),
                   durationText(steady.stepP99Ns),
                   steady.tokensPerSecond ? formatCount(*steady.tokensPerSecond) : kUnknown, percentText(steady.mfu),
                   bytesText(rank.peakAllocatedBytes), fmt::format("{}", rank.droppedRecords)});
    }
    return table.empty() ? "" : "Ranks\n" + table.toText();
}

/// Where the time of a step went: columns add up to 100 %.
std::string waterfallText(const Analysis &analysis)
{
    TextTable table({"attempt", "rank", "step", "compute", "optimizer", "all-gather", "reduce-scatter", "all-reduce",
                     "other comm.", "copy", "idle: host", "peer", "other", "overlapped"},
                    2);
    for (const RankSummary &rank : analysis.ranks) {
        if (!rank.steady.sums || rank.steady.sums->wallNs == 0)
            continue;
        const store::StepSums &sums = *rank.steady.sums;
        const auto share = [&](int64_t ns) {
            return percentText(static_cast<double>(ns) / static_cast<double>(sums.wallNs));
        };
        table.add({fmt::format("{}", rank.attempt), fmt::format("{}", rank.rank),
                   formatDuration(rank.steady.aStep(sums.wallNs)), share(sums.computeNs - sums.optimizerNs),
                   share(sums.optimizerNs), share(sums.exposedAllGatherNs), share(sums.exposedReduceScatterNs),
                   share(sums.exposedAllReduceNs), share(sums.exposedOtherCommunicationNs), share(sums.exposedCopyNs),
                   share(sums.idleHostNs), share(sums.idlePeerNs), share(sums.idleOtherNs),
                   share(sums.overlappedCommunicationNs)});
    }
    if (table.empty())
        return {};
    std::string text = "Where a step's time goes (communication and copies: what nothing hides)\n" + table.toText();
    if (analysis.waitedFor)
        text += fmt::format("  The others wait for rank {}, {} a step\n", analysis.ranks[analysis.waitedFor->rank].rank,
                            formatDuration(analysis.waitedFor->lateNs));
    return text;
}

std::string memoryText(const Analysis &analysis)
{
    std::vector<std::string> header = {"attempt", "rank", "allocated"};
    for (size_t i = 0; i < kMemoryCategories; ++i)
        header.emplace_back(toText(static_cast<MemoryCategory>(i)));
    header.emplace_back("rounding");
    TextTable table(std::move(header), 2);
    for (const RankSummary &rank : analysis.ranks) {
        if (!rank.memoryAtPeakBytes)
            continue;
        std::vector<std::string> row = {fmt::format("{}", rank.attempt), fmt::format("{}", rank.rank),
                                        bytesText(rank.peakAllocatedBytes)};
        for (const int64_t bytes : *rank.memoryAtPeakBytes)
            row.push_back(formatBytes(bytes));
        table.add(std::move(row));
    }
    return table.empty() ? "" : "Memory at the peak\n" + table.toText();
}

std::string collectivesText(const Analysis &analysis)
{
    TextTable table(
        {"operation", "unit", "phase", "dtype", "calls", "bytes", "mean", "p99", "wait", "exposed", "bus bandwidth"},
        4);
    for (size_t i = 0; i < std::min(analysis.collectives.size(), kCollectivesShown); ++i) {
        const CollectiveSummary &one = analysis.collectives[i];
        table.add({std::string(toText(one.operation)), one.unit.empty() ? kUnknown : one.unit,
                   one.phase ? std::string(toText(*one.phase)) : kUnknown, one.dtype, fmt::format("{}", one.count),
                   formatBytes(std::max(one.inputBytes, one.outputBytes)), meanText(one.meanNs),
                   durationText(one.p99Ns), durationText(one.waitNs), durationText(one.exposedNs),
                   rateText(one.busBandwidth)});
    }
    if (table.empty())
        return {};
    std::string text =
        "Collectives of all steps with spans (mean and p99 of the transfer; wait and exposed are sums over ranks)\n" +
        table.toText();
    if (analysis.collectives.size() > kCollectivesShown)
        text += fmt::format("  and {} more: --format json has all\n", analysis.collectives.size() - kCollectivesShown);
    return text;
}

std::string findingsText(const Analysis &analysis)
{
    const bool timed = std::any_of(analysis.ranks.begin(), analysis.ranks.end(),
                                   [](const RankSummary &rank) { return rank.steady.sums.has_value(); });
    if (analysis.findings.empty() && !timed)
        return "Findings\n  none, but no step's times were recorded (record.level = off?)\n";
    if (analysis.findings.empty())
        return "Findings\n  none: exposed communication is below 25 %, no rank is late, nothing is missing\n";
    std::string text = "Findings\n";
    for (const Finding &finding : analysis.findings) {
        text += fmt::format("  {}", finding.cause);
        if (finding.share)
            text += fmt::format(", {}", percentText(finding.share));
        if (finding.gainNs)
            text += fmt::format(", up to {} a step", formatDuration(*finding.gainNs));
        text += fmt::format("\n    {}\n    {}\n", finding.text, finding.remedy);
    }
    return text;
}

} // namespace

std::string toText(const Analysis &analysis, std::string_view name)
{
    std::string text =
        fmt::format("Recording of {} (by {}{})\n", name, analysis.source, analysis.complete ? "" : ", incomplete");
    if (analysis.attempts.empty())
        return text + "Nothing has been recorded yet.\n";
    for (const std::string &part : {attemptsText(analysis), lossText(analysis), ranksText(analysis),
                                    waterfallText(analysis), memoryText(analysis), collectivesText(analysis)}) {
        if (!part.empty())
            text += "\n" + part;
    }
    // Without a step there is nothing to find fault with but what is missing.
    if (!analysis.steps.empty() || !analysis.findings.empty())
        text += "\n" + findingsText(analysis);
    return text;
}

} // namespace shardscope::analysis
