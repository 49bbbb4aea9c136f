// SPDX-License-Identifier: Apache-2.0
// Ranks that hold up the others. Ranks leave a collective together, so that their steps are equally long, whoever is
// late: it shows in what each does of that time, not in how long it is.
#include "core/base/text.h"
#include "profiler/analysis/summaries.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::analysis {
namespace {

/// A rank is late where it computes longer than the others by this share, or has them wait for this share of a step.
constexpr double kStragglerShare = 0.10;

int64_t computeNs(const RankSummary &rank)
{
    return rank.steady.aStep(rank.steady.sums->computeNs);
}

int64_t bareCollectivesNs(const RankSummary &rank)
{
    return rank.steady.aStep(rank.steady.sums->bareCollectivesNs());
}

/// Of all of `ranks` but one; there are others.
int64_t medianOfOthers(const std::vector<RankSummary> &all, const std::vector<size_t> &ranks, size_t one,
                       int64_t (*value)(const RankSummary &))
{
    std::vector<int64_t> values;
    for (const size_t rank : ranks) {
        if (rank != one)
            values.push_back(value(all[rank]));
    }
    std::sort(values.begin(), values.end());
    return percentile(values, 0.5);
}

/// sumNs: what its query compares of each rank's steps, by the name of meanName.
Finding stragglerFinding(const RankSummary &rank, const RankSteps &steps, int64_t lateNs, const char *sumNs,
                         const char *meanName)
{
    Finding finding;
    finding.cause = "straggler";
    const int64_t stepNs = rank.steady.aStep(rank.steady.sums->wallNs);
    finding.share = stepNs > 0 ? static_cast<double>(lateNs) / static_cast<double>(stepNs) : 0;
    finding.gainNs = lateNs;
    finding.evidence.attempt = rank.attempt;
    finding.evidence.rank = rank.rank;
    finding.evidenceSql = fmt::format("SELECT p.rank, count(*) AS steps, sum({0}) / count(*) AS {1} FROM step s "
                                      "JOIN process p USING (process_id) WHERE p.attempt = {2} AND s.compute_ns IS NOT "
                                      "NULL{3} GROUP BY p.rank ORDER BY {1} DESC",
                                      sumNs, meanName, rank.attempt, steps.steadySql());
    return finding;
}

/// Computes longer than the others.
std::optional<Finding> slowComputation(const RankSummary &rank, const RankSteps &steps, int64_t medianNs)
{
    const int64_t longerNs = computeNs(rank) - medianNs;
    if (medianNs <= 0 || static_cast<double>(longerNs) <= kStragglerShare * static_cast<double>(medianNs))
        return std::nullopt;
    Finding finding = stragglerFinding(rank, steps, longerNs, "s.compute_ns", "mean_compute_ns");
    finding.text = fmt::format("Rank {} computes {} a step, the median of the others is {} ({} longer): they wait for "
                               "it at every collective.",
                               rank.rank, formatDuration(computeNs(rank)), formatDuration(medianNs),
                               percent(static_cast<double>(longerNs) / static_cast<double>(medianNs)));
    finding.remedy = "Look at this rank's device: another program on it, a lower clock (power, temperature), a slower "
                     "model, or CPU cores that it shares.";
    return finding;
}

/// Comes late to collectives without computing longer: its host keeps its device waiting.
std::optional<Finding> lateHost(const RankSummary &rank, const RankSteps &steps, int64_t lateNs)
{
    Finding finding =
        stragglerFinding(rank, steps, lateNs, "s.exposed_communication_ns + s.idle_peer_ns", "mean_waiting_ns");
    if (*finding.share <= kStragglerShare)
        return std::nullopt;
    const store::StepSums &sums = *rank.steady.sums;
    finding.text =
        fmt::format("The others wait for rank {}: it stands {} of a step in collectives and does nothing else, "
                    "the median of the others is {} longer. It computes hardly longer than they do, if at all; for {} "
                    "of a step nothing runs on it and no peer is late.",
                    rank.rank, formatDuration(bareCollectivesNs(rank)), formatDuration(lateNs),
                    formatDuration(rank.steady.aStep(sums.idleNs - sums.idlePeerNs)));
    finding.remedy = "Look in the timeline at what this rank's process does while nothing runs: CPU cores that it "
                     "shares, reading of data, files that it alone writes. Where launching small kernels takes the "
                     "time, a larger train.micro_batch helps.";
    return finding;
}

} // namespace

std::vector<size_t> newestTimedRanks(const std::vector<RankSummary> &ranks)
{
    std::vector<size_t> newest;
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (!ranks[i].steady.sums)
            continue;
        if (!newest.empty() && ranks[newest.back()].attempt != ranks[i].attempt)
            newest.clear();
        newest.push_back(i);
    }
    return newest;
}

std::optional<WaitedFor> findWaitedFor(const Analysis &analysis)
{
    const std::vector<RankSummary> &ranks = analysis.ranks;
    const std::vector<size_t> newest = newestTimedRanks(ranks);
    const bool incomplete =
        std::any_of(analysis.attempts.begin(), analysis.attempts.end(), [&](const AttemptSummary &attempt) {
            return !newest.empty() && attempt.attempt == ranks[newest.front()].attempt && !attempt.missingRanks.empty();
        });
    if (newest.size() < 2 || incomplete)
        return std::nullopt;
    const size_t last = *std::min_element(newest.begin(), newest.end(), [&](size_t a, size_t b) {
        return bareCollectivesNs(ranks[a]) < bareCollectivesNs(ranks[b]);
    });
    const int64_t lateNs = medianOfOthers(ranks, newest, last, bareCollectivesNs) - bareCollectivesNs(ranks[last]);
    return lateNs > 0 ? std::optional(WaitedFor{last, lateNs}) : std::nullopt;
}

void findStragglers(const Input &input, const Analysis &analysis, std::vector<Finding> &findings)
{
    const std::vector<size_t> newest = newestTimedRanks(analysis.ranks);
    if (newest.size() < 2)
        return;
    bool explained = !analysis.waitedFor;
    for (const size_t i : newest) {
        const int64_t medianNs = medianOfOthers(analysis.ranks, newest, i, computeNs);
        auto finding = slowComputation(analysis.ranks[i], input.ranks[i], medianNs);
        if (!finding)
            continue;
        findings.push_back(std::move(*finding));
        explained = explained || i == analysis.waitedFor->rank;
    }
    if (explained)
        return;
    const size_t late = analysis.waitedFor->rank;
    if (auto finding = lateHost(analysis.ranks[late], input.ranks[late], analysis.waitedFor->lateNs))
        findings.push_back(std::move(*finding));
}

} // namespace shardscope::analysis
