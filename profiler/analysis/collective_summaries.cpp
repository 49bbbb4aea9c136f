// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/compute_intervals.h"
#include "profiler/analysis/summaries.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace shardscope::analysis {
namespace {

using store::Interval;

using GroupKey = std::tuple<std::string, Operation, std::string, int, std::string>;

struct Group
{
    const store::CollectiveCall *first = nullptr;
    int64_t count = 0;
    int64_t inputBytes = 0;
    int64_t outputBytes = 0;
    std::vector<int64_t> transfersNs;
    std::optional<int64_t> waitNs;
    std::optional<int64_t> exposedNs;
};

/// When a rank computes: the union of the compute spans of its streams and threads.
Result<std::vector<Interval>> computeOf(const Input &input, store::Index process)
{
    std::vector<Interval> intervals;
    for (size_t lane = 0; lane < input.catalog->lanes.size(); ++lane) {
        const store::LaneInfo &info = input.catalog->lanes[lane];
        if (info.process != process || info.kind == LaneKind::Phase)
            continue;
        const auto spans =
            input.recording.spans(static_cast<store::Index>(lane), store::kBeginning, store::kEnd, input.cancel);
        if (!spans)
            return tl::unexpected(spans.error());
        appendCompute(*spans, info.kind, intervals);
    }
    return store::uniteIntervals(std::move(intervals));
}

void addCall(Group &group, const store::CollectiveCall &call,
             const std::map<store::Index, std::vector<Interval>> &compute)
{
    if (!group.first)
        group.first = &call;
    ++group.count;
    group.inputBytes += call.inputBytes;
    group.outputBytes += call.outputBytes;
    if (const auto transferNs = call.transferNs())
        group.transfersNs.push_back(*transferNs);
    for (const store::CollectivePart &part : call.parts) {
        if (part.waitNs)
            group.waitNs = group.waitNs.value_or(0) + *part.waitNs;
        const auto intervals = compute.find(part.process);
        if (part.startedNs && part.endedNs && intervals != compute.end()) {
            group.exposedNs =
                group.exposedNs.value_or(0) + store::uncoveredNs(intervals->second, *part.startedNs, *part.endedNs);
        }
    }
}

CollectiveSummary summaryOf(Group group)
{
    const store::CollectiveCall &call = *group.first;
    CollectiveSummary summary{call.communicator, call.operation, call.unit, call.phase, call.dtype, group.count};
    summary.inputBytes = group.inputBytes / group.count;
    summary.outputBytes = group.outputBytes / group.count;
    summary.waitNs = group.waitNs;
    summary.exposedNs = group.exposedNs;
    if (group.transfersNs.empty())
        return summary;
    std::sort(group.transfersNs.begin(), group.transfersNs.end());
    const int64_t sumNs = std::accumulate(group.transfersNs.begin(), group.transfersNs.end(), int64_t{0});
    summary.meanNs = static_cast<double>(sumNs) / static_cast<double>(group.transfersNs.size());
    summary.p50Ns = percentile(group.transfersNs, 0.5);
    summary.p99Ns = percentile(group.transfersNs, 0.99);
    if (*summary.meanNs > 0) {
        const int64_t bytes = bandwidthBytes(call.operation, summary.inputBytes, summary.outputBytes);
        summary.algorithmBandwidth = static_cast<double>(bytes) * 1e9 / *summary.meanNs;
        summary.busBandwidth = *summary.algorithmBandwidth * busFactor(call.operation, call.size);
    }
    return summary;
}

} // namespace

double busFactor(Operation operation, int64_t ranks)
{
    if (ranks < 1)
        return 1;
    const double n = static_cast<double>(ranks);
    switch (operation) {
    case Operation::AllReduce:
        return 2 * (n - 1) / n;
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAll:
        return (n - 1) / n;
    case Operation::Broadcast:
    case Operation::Send:
    case Operation::Recv:
        return 1;
    }
    return 1;
}

int64_t bandwidthBytes(Operation operation, int64_t inputBytes, int64_t outputBytes)
{
    switch (operation) {
    case Operation::AllGather:
    case Operation::Recv:
        return outputBytes;
    default:
        return inputBytes;
    }
}

Result<std::vector<CollectiveSummary>> summarizeCollectives(const Input &input)
{
    const auto calls = input.recording.collectives(store::kBeginning, store::kEnd, input.cancel);
    if (!calls)
        return tl::unexpected(calls.error());
    std::map<store::Index, std::vector<Interval>> compute;
    for (const RankSteps &rank : input.ranks) {
        auto intervals = computeOf(input, rank.process);
        if (!intervals)
            return tl::unexpected(intervals.error());
        if (!intervals->empty())
            compute[rank.process] = std::move(*intervals);
    }
    std::map<GroupKey, Group> groups;
    for (const store::CollectiveCall &call : *calls) {
        const int phase = call.phase ? static_cast<int>(*call.phase) : -1;
        addCall(groups[{call.communicator, call.operation, call.unit, phase, call.dtype}], call, compute);
    }
    std::vector<CollectiveSummary> summaries;
    for (auto &[key, group] : groups)
        summaries.push_back(summaryOf(std::move(group)));
    // What costs most comes first.
    std::stable_sort(summaries.begin(), summaries.end(), [](const CollectiveSummary &a, const CollectiveSummary &b) {
        return a.exposedNs.value_or(0) > b.exposedNs.value_or(0);
    });
    return summaries;
}

} // namespace shardscope::analysis
