// SPDX-License-Identifier: Apache-2.0
// Causes with evidence and remedy. A gain is what a step could win at most, as a mean over the rank's steady steps:
// hidden communication needs compute to hide behind, so it is never more than the compute that hides nothing yet.
#include "core/base/text.h"
#include "profiler/analysis/evidence.h"
#include "profiler/analysis/summaries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::analysis {
namespace {

/// A rank's summary with its steps, of the newest attempt that has both.
struct Subject
{
    const RankSummary *summary = nullptr;
    const RankSteps *steps = nullptr;

    const store::StepSums &sums() const { return *summary->steady.sums; }
    int64_t aStep(int64_t sumNs) const { return summary->steady.aStep(sumNs); }
    double share(int64_t sumNs) const
    {
        return sums().wallNs > 0 ? static_cast<double>(sumNs) / static_cast<double>(sums().wallNs) : 0;
    }
    /// Of so much exposed communication, what compute could hide.
    int64_t hideable(int64_t exposedNs) const
    {
        return std::min(exposedNs, sums().computeNs - sums().overlappedCommunicationNs);
    }
};

std::vector<Subject> newestRanks(const Input &input, const Analysis &analysis)
{
    std::vector<Subject> subjects;
    for (const size_t i : newestTimedRanks(analysis.ranks))
        subjects.push_back({&analysis.ranks[i], &input.ranks[i]});
    return subjects;
}

const Subject &worstExposed(const std::vector<Subject> &subjects)
{
    return *std::max_element(subjects.begin(), subjects.end(), [](const Subject &a, const Subject &b) {
        return a.share(a.sums().exposedCommunicationNs) < b.share(b.sums().exposedCommunicationNs);
    });
}

/// "all-gather", the operation that most of it is.
std::string mostExposedOperation(const store::StepSums &sums)
{
    const std::pair<int64_t, const char *> parts[] = {{sums.exposedAllGatherNs, "all-gather"},
                                                      {sums.exposedReduceScatterNs, "reduce-scatter"},
                                                      {sums.exposedAllReduceNs, "all-reduce"},
                                                      {sums.exposedOtherCommunicationNs, "other operations"}};
    return std::max_element(std::begin(parts), std::end(parts))->second;
}

struct ShardingSetting
{
    bool backward = true;
    bool forward = true;
    std::string strategy = "full"; ///< none gathers nothing
};

/// As the newest configuration of the rank says; what it does not say counts as on.
ShardingSetting shardingOf(const Input &input, store::Index process)
{
    ShardingSetting setting;
    for (const store::ConfigInfo &config : input.catalog->configs) {
        const auto json = nlohmann::json::parse(config.fullJson, nullptr, false);
        if (config.process != process || !json.is_object() || !json.contains("parallel"))
            continue;
        const auto &parallel = json["parallel"];
        if (!parallel.is_object())
            continue;
        setting.backward = parallel.value("prefetch", nlohmann::json()) != "off";
        setting.forward = parallel.value("forward_prefetch", nlohmann::json()) != false;
        if (const auto strategy = parallel.find("strategy"); strategy != parallel.end() && strategy->is_string())
            setting.strategy = *strategy;
    }
    return setting;
}

std::string stepSql(const RankSteps &steps, std::string_view column)
{
    return fmt::format(
        "SELECT p.rank, s.number, s.{0}, s.wall_ns, round(1.0 * s.{0} / s.wall_ns, 4) AS share FROM step "
        "s JOIN process p USING (process_id) WHERE p.attempt = {1} AND s.wall_ns > 0{2} ORDER BY share "
        "DESC LIMIT 20",
        column, steps.attempt, steps.steadySql());
}

/// What is left to turn: only what the run has not turned yet.
std::string remedyFor(const ShardingSetting &setting, bool tooLittleCompute)
{
    std::string remedy = tooLittleCompute
                             ? "There is less computation than communication: give each rank more tokens a gather "
                               "(train.micro_batch, train.sequence_length)"
                             : "Give computation more to hide it with: more tokens a gather (train.micro_batch, "
                               "train.sequence_length)";
    if (setting.strategy == "full")
        remedy += ", or parallel.strategy = \"grad_op\", which does not gather again in backward, if memory allows";
    else if (setting.strategy == "grad_op")
        remedy += ", or parallel.strategy = \"none\", which gathers nothing, if memory allows";
    else
        remedy += ", or more accumulation (train.accumulation), so that there are fewer reductions a token";
    const bool prefetches = (setting.backward && setting.forward) || setting.strategy == "none";
    return remedy + (prefetches ? "." : ". First of all turn prefetch on.");
}

/// Of the worst rank's exposed communication, what it waits for the rank that comes last; 0: none, or it is that one.
int64_t waitingNs(const Analysis &analysis, const Subject &worst)
{
    if (!analysis.waitedFor)
        return 0;
    const RankFigures &last = analysis.ranks[analysis.waitedFor->rank].steady;
    const int64_t longerNs = worst.aStep(worst.sums().bareCollectivesNs()) - last.aStep(last.sums->bareCollectivesNs());
    return std::clamp<int64_t>(longerNs, 0, worst.aStep(worst.sums().exposedCommunicationNs));
}

void findExposedCommunication(const Input &input, const Analysis &analysis, const std::vector<Subject> &subjects,
                              std::vector<Finding> &findings)
{
    const Subject &worst = worstExposed(subjects);
    const store::StepSums &sums = worst.sums();
    const double share = worst.share(sums.exposedCommunicationNs);
    if (share <= kExposedShareLimit)
        return;
    Finding finding;
    finding.cause = "exposed_communication";
    finding.share = share;
    finding.evidence = worstExposedCommunication(input, *worst.steps);
    const int64_t gainNs = worst.aStep(worst.hideable(sums.exposedCommunicationNs));
    finding.text =
        fmt::format("Rank {} spends {} of its time in communication that no computation hides: {} of a step "
                    "of {} (mean), most of it {}.",
                    worst.summary->rank, percent(share), formatDuration(worst.aStep(sums.exposedCommunicationNs)),
                    formatDuration(worst.aStep(sums.wallNs)), mostExposedOperation(sums));
    if (!finding.evidence.unit.empty())
        finding.text += fmt::format(" The longest stretch is at {} in step {}.", finding.evidence.unit,
                                    finding.evidence.step.value_or(0));
    const int64_t waitNs = waitingNs(analysis, worst);
    const int64_t lastRank = waitNs > 0 ? analysis.ranks[analysis.waitedFor->rank].rank : 0;
    if (waitNs > 0)
        finding.text += fmt::format(" Up to {} of a step is waiting for rank {}, which comes last.",
                                    formatDuration(waitNs), lastRank);
    const bool tooLittleCompute = gainNs < worst.aStep(sums.exposedCommunicationNs);
    finding.remedy = remedyFor(shardingOf(input, worst.steps->process), tooLittleCompute);
    if (2 * waitNs > worst.aStep(sums.exposedCommunicationNs))
        finding.remedy = fmt::format("First of all see why rank {} is late. {}", lastRank, finding.remedy);
    finding.gainNs = gainNs;
    finding.evidenceSql = stepSql(*worst.steps, "exposed_communication_ns");
    findings.push_back(std::move(finding));
}

void findPrefetchOff(const Input &input, const std::vector<Subject> &subjects, std::vector<Finding> &findings)
{
    const Subject &worst = worstExposed(subjects);
    const store::StepSums &sums = worst.sums();
    const ShardingSetting setting = shardingOf(input, worst.steps->process);
    const bool allOn = setting.backward && setting.forward;
    if (allOn || setting.strategy == "none" || sums.exposedAllGatherNs == 0)
        return;
    Finding finding;
    finding.cause = "prefetch_off";
    finding.share = worst.share(sums.exposedAllGatherNs);
    const char *where = setting.backward ? "forward" : setting.forward ? "backward" : "forward and backward";
    finding.text = fmt::format("Prefetch is off in {}: each unit's all-gather begins only when its parameters are "
                               "needed. {} of a step (mean, rank {}) are all-gathers that nothing hides.",
                               where, formatDuration(worst.aStep(sums.exposedAllGatherNs)), worst.summary->rank);
    finding.remedy = setting.backward ? "Set parallel.forward_prefetch = true."
                     : setting.forward
                         ? "Set parallel.prefetch = \"pre\". It takes one more gathered unit of memory."
                         : "Set parallel.prefetch = \"pre\" and parallel.forward_prefetch = true. It takes "
                           "one more gathered unit of memory.";
    finding.gainNs = worst.aStep(worst.hideable(sums.exposedAllGatherNs));
    finding.evidence = worstExposedCommunication(input, *worst.steps);
    finding.evidenceSql = stepSql(*worst.steps, "exposed_all_gather_ns");
    findings.push_back(std::move(finding));
}

void findDrops(const Input &input, std::vector<Finding> &findings)
{
    int64_t dropped = 0, written = 0;
    const store::ProcessInfo *worst = nullptr;
    for (const store::ProcessInfo &process : input.catalog->processes) {
        dropped += process.droppedRecords;
        written += process.spansWritten;
        if (process.droppedRecords > 0 && (!worst || process.droppedRecords > worst->droppedRecords))
            worst = &process;
    }
    if (!worst)
        return;
    Finding finding;
    finding.cause = "dropped_records";
    finding.text = fmt::format("{} records were dropped ({} spans were kept), most of them by {}: times and counts are "
                               "lower bounds.",
                               dropped, written, worst->rank ? fmt::format("rank {}", *worst->rank) : "the supervisor");
    finding.remedy = "Record at level light, give the recorder a core, or look whether the disk is slow or full.";
    finding.evidence.attempt = worst->attempt;
    finding.evidence.rank = worst->rank;
    finding.evidenceSql = "SELECT p.attempt, p.rank, f.written_ns, f.dropped_records FROM flush f JOIN process p USING "
                          "(process_id) WHERE f.dropped_records > 0 ORDER BY f.dropped_records DESC LIMIT 20";
    findings.push_back(std::move(finding));
}

void findMissingRanks(const Input &input, std::vector<Finding> &findings)
{
    for (const store::AttemptInfo &attempt : input.catalog->attempts) {
        if (attempt.missingRanks.empty())
            continue;
        Finding finding;
        finding.cause = "missing_ranks";
        const bool one = attempt.missingRanks.size() == 1;
        finding.text = fmt::format("Attempt {} has {} ranks, but there is no readable database of {} {}: waits and "
                                   "transfers of collectives can't be told apart.",
                                   attempt.attempt, attempt.worldSize, one ? "rank" : "ranks",
                                   fmt::join(attempt.missingRanks, ", "));
        finding.remedy =
            fmt::format("Copy attempt-{}/rank-N.sqlite from the machine that ran it, or look in its logs why "
                        "it recorded nothing.",
                        attempt.attempt);
        finding.evidence.attempt = attempt.attempt;
        finding.evidence.rank = attempt.missingRanks.front();
        finding.evidenceSql = fmt::format(
            "SELECT rank, world_size, host, pid FROM process WHERE attempt = {} ORDER BY rank", attempt.attempt);
        findings.push_back(std::move(finding));
    }
}

} // namespace

std::string percent(double share)
{
    return fmt::format("{:.1f} %", share * 100);
}

std::vector<Finding> findCauses(const Input &input, const Analysis &analysis)
{
    std::vector<Finding> findings;
    if (const auto subjects = newestRanks(input, analysis); !subjects.empty()) {
        findExposedCommunication(input, analysis, subjects, findings);
        findPrefetchOff(input, subjects, findings);
        findStragglers(input, analysis, findings);
    }
    findDrops(input, findings);
    findMissingRanks(input, findings);
    std::stable_sort(findings.begin(), findings.end(),
                     [](const Finding &a, const Finding &b) { return a.gainNs.value_or(-1) > b.gainNs.value_or(-1); });
    return findings;
}

} // namespace shardscope::analysis
