// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/analysis.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace shardscope::analysis {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T> &value)
{
    return value ? Json(*value) : Json(nullptr);
}

/// JSON has no NaN and no infinity: what is not a number was not measured.
Json orNull(const std::optional<double> &value)
{
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

template <typename E>
Json wordOrNull(const std::optional<E> &value)
{
    return value ? Json(toText(*value)) : Json(nullptr);
}

Json textOrNull(const std::string &text)
{
    return text.empty() ? Json(nullptr) : Json(text);
}

Json jsonOf(const AttemptSummary &attempt)
{
    Json recorded = nullptr;
    if (attempt.firstRecordedStep)
        recorded = {*attempt.firstRecordedStep, *attempt.lastRecordedStep};
    return {{"attempt", attempt.attempt},
            {"world_size", attempt.worldSize > 0 ? Json(attempt.worldSize) : Json(nullptr)},
            {"missing_ranks", attempt.missingRanks},
            {"first_step", orNull(attempt.firstStep)},
            {"last_step", orNull(attempt.lastStep)},
            {"recorded_steps", std::move(recorded)},
            {"end_reason", attempt.endReason},
            {"warm_up_steps", attempt.warmUpSteps}};
}

Json jsonOf(const StepSummary &step)
{
    return {{"attempt", step.attempt},
            {"step", step.step},
            {"config", orNull(step.config)},
            {"state", wordOrNull(step.state)},
            {"loss", orNull(step.loss)},
            {"gradient_norm", orNull(step.gradientNorm)},
            {"learning_rate", orNull(step.learningRate)},
            {"tokens", orNull(step.tokens)},
            {"duration_ns", orNull(step.durationNs)}};
}

Json waterfallOf(const std::optional<store::StepSums> &sums)
{
    const auto ns = [&](int64_t store::StepSums::*member) { return sums ? Json((*sums).*member) : Json(nullptr); };
    return {{"compute", sums ? Json(sums->computeNs - sums->optimizerNs) : Json(nullptr)},
            {"exposed_all_gather", ns(&store::StepSums::exposedAllGatherNs)},
            {"exposed_reduce_scatter", ns(&store::StepSums::exposedReduceScatterNs)},
            {"exposed_all_reduce", ns(&store::StepSums::exposedAllReduceNs)},
            {"exposed_other_communication", ns(&store::StepSums::exposedOtherCommunicationNs)},
            {"exposed_copy", ns(&store::StepSums::exposedCopyNs)},
            {"optimizer", ns(&store::StepSums::optimizerNs)},
            {"idle_host", ns(&store::StepSums::idleHostNs)},
            {"idle_peer", ns(&store::StepSums::idlePeerNs)},
            {"idle_other", ns(&store::StepSums::idleOtherNs)}};
}

Json memoryOf(const RankSummary &rank)
{
    if (!rank.memoryAtPeakBytes)
        return nullptr;
    Json json = Json::object();
    for (size_t i = 0; i < kMemoryCategories; ++i)
        json[std::string(toText(static_cast<MemoryCategory>(i)))] = (*rank.memoryAtPeakBytes)[i];
    json["rounding"] = rank.memoryAtPeakBytes->back();
    return json;
}

Json jsonOf(const RankFigures &figures)
{
    const auto ns = [&](int64_t store::StepSums::*member) {
        return figures.sums ? Json((*figures.sums).*member) : Json(nullptr);
    };
    const auto share = [&](auto function) {
        return orNull(figures.sums ? ((*figures.sums).*function)() : std::optional<double>());
    };
    return {{"steps", figures.steps},
            {"step_ns", {{"median", orNull(figures.stepMedianNs)}, {"p99", orNull(figures.stepP99Ns)}}},
            {"tokens_per_second", orNull(figures.tokensPerSecond)},
            {"mfu", orNull(figures.mfu)},
            {"wall_ns", ns(&store::StepSums::wallNs)},
            {"compute_ns", ns(&store::StepSums::computeNs)},
            {"communication_ns", ns(&store::StepSums::communicationNs)},
            {"overlapped_communication_ns", ns(&store::StepSums::overlappedCommunicationNs)},
            {"exposed_communication_ns", ns(&store::StepSums::exposedCommunicationNs)},
            {"copy_ns", ns(&store::StepSums::copyNs)},
            {"exposed_copy_ns", ns(&store::StepSums::exposedCopyNs)},
            {"idle_ns", ns(&store::StepSums::idleNs)},
            {"exposed_communication_share", share(&store::StepSums::exposedCommunicationShare)},
            {"communication_share_of_device_time", share(&store::StepSums::communicationShareOfDeviceTime)},
            {"waterfall_ns", waterfallOf(figures.sums)}};
}

Json jsonOf(const RankSummary &rank)
{
    Json json = {{"attempt", rank.attempt}, {"rank", rank.rank}, {"device", textOrNull(rank.device)}};
    json.update(jsonOf(rank.all));
    json["peak_allocated_bytes"] = orNull(rank.peakAllocatedBytes);
    json["memory_at_peak_bytes"] = memoryOf(rank);
    json["dropped_records"] = rank.droppedRecords;
    json["steady"] = jsonOf(rank.steady);
    return json;
}

Json jsonOf(const CollectiveSummary &collective)
{
    return {{"communicator", collective.communicator},
            {"operation", toText(collective.operation)},
            {"unit", textOrNull(collective.unit)},
            {"phase", wordOrNull(collective.phase)},
            {"dtype", collective.dtype},
            {"count", collective.count},
            {"input_bytes", collective.inputBytes},
            {"output_bytes", collective.outputBytes},
            {"mean_ns", orNull(collective.meanNs)},
            {"p50_ns", orNull(collective.p50Ns)},
            {"p99_ns", orNull(collective.p99Ns)},
            {"wait_ns", orNull(collective.waitNs)},
            {"exposed_ns", orNull(collective.exposedNs)},
            {"algorithm_bandwidth_bytes_per_second", orNull(collective.algorithmBandwidth)},
            {"bus_bandwidth_bytes_per_second", orNull(collective.busBandwidth)}};
}

Json jsonOf(const Finding &finding)
{
    const Evidence &evidence = finding.evidence;
    return {{"cause", finding.cause},
            {"share", orNull(finding.share)},
            {"text", finding.text},
            {"remedy", finding.remedy},
            {"gain_ns", orNull(finding.gainNs)},
            {"evidence_sql", textOrNull(finding.evidenceSql)},
            {"evidence",
             {{"attempt", orNull(evidence.attempt)},
              {"rank", orNull(evidence.rank)},
              {"step", orNull(evidence.step)},
              {"lane", textOrNull(evidence.lane)},
              {"unit", textOrNull(evidence.unit)},
              {"start_ns", orNull(evidence.startNs)},
              {"end_ns", orNull(evidence.endNs)}}}};
}

template <typename T>
Json listOf(const std::vector<T> &items)
{
    Json list = Json::array();
    for (const T &item : items)
        list.push_back(jsonOf(item));
    return list;
}

Json jsonOf(const ValidationPoint &point)
{
    return {{"attempt", point.attempt}, {"step", point.step}, {"loss", orNull(std::optional<double>(point.loss))}};
}

Json waitedForOf(const Analysis &analysis)
{
    if (!analysis.waitedFor)
        return nullptr;
    const RankSummary &rank = analysis.ranks[analysis.waitedFor->rank];
    return {{"attempt", rank.attempt}, {"rank", rank.rank}, {"late_ns", analysis.waitedFor->lateNs}};
}

} // namespace

std::string toJson(const Analysis &analysis)
{
    Json json;
    json["schema_version"] = kAnalysisSchemaVersion;
    json["source"] = analysis.source;
    json["complete"] = analysis.complete;
    json["origin_ns"] = analysis.originNs;
    json["clock_uncertainty_ns"] = analysis.clockUncertaintyNs;
    json["attempts"] = listOf(analysis.attempts);
    json["steps"] = listOf(analysis.steps);
    json["validation"] = Json::array();
    for (const ValidationPoint &point : analysis.validation)
        json["validation"].push_back(jsonOf(point));
    json["slowest"] = analysis.slowest ? jsonOf(analysis.ranks[*analysis.slowest]) : Json(nullptr);
    json["waited_for"] = waitedForOf(analysis);
    json["ranks"] = listOf(analysis.ranks);
    json["collectives"] = listOf(analysis.collectives);
    json["findings"] = listOf(analysis.findings);
    return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace shardscope::analysis
