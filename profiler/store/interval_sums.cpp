// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/interval_sums.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace shardscope::store {
namespace {

/// What may run at a moment, in the order in which it counts.
enum Part { Compute, OptimizerCompute, AllGather, ReduceScatter, AllReduce, OtherCommunication, Copy, Peer, Host };
constexpr size_t kParts = Host + 1;
constexpr int kUncounted = -1;

int communicationPart(std::optional<Operation> operation)
{
    if (operation == Operation::AllGather)
        return AllGather;
    if (operation == Operation::ReduceScatter)
        return ReduceScatter;
    return operation == Operation::AllReduce ? AllReduce : OtherCommunication;
}

int partOf(const TimedSpan &span)
{
    switch (span.category) {
    case SpanCategory::Compute:
        return span.phase == Phase::Optimizer ? OptimizerCompute : Compute;
    case SpanCategory::Communication:
        return communicationPart(span.operation);
    case SpanCategory::Copy:
        return Copy;
    case SpanCategory::Host:
        return Host;
    case SpanCategory::Idle:
        return span.operation ? Peer : kUncounted;
    }
    return kUncounted;
}

struct Edge
{
    int64_t timeNs;
    int8_t part;
    int8_t change; ///< +1 opens, −1 closes
};

void addEdges(std::vector<Edge> &edges, const TimedSpan &span, int64_t startNs, int64_t endNs)
{
    const int part = partOf(span);
    const int64_t from = std::max(span.startNs, startNs);
    const int64_t to = std::min(span.endNs, endNs);
    if (part == kUncounted || from >= to)
        return;
    edges.push_back({from, static_cast<int8_t>(part), 1});
    edges.push_back({to, static_cast<int8_t>(part), -1});
}

/// Adds a stretch in which the open parts do not change.
void addStretch(StepSums &sums, const std::array<int32_t, kParts> &open, int64_t ns)
{
    const bool compute = open[Compute] > 0 || open[OptimizerCompute] > 0;
    const bool communication =
        open[AllGather] > 0 || open[ReduceScatter] > 0 || open[AllReduce] > 0 || open[OtherCommunication] > 0;
    sums.communicationNs += communication ? ns : 0;
    sums.copyNs += open[Copy] > 0 ? ns : 0;
    if (compute) {
        sums.computeNs += ns;
        sums.optimizerNs += open[Compute] > 0 ? 0 : ns;
        sums.overlappedCommunicationNs += communication ? ns : 0;
    } else if (communication) {
        sums.exposedCommunicationNs += ns;
        int64_t &part = open[AllGather] > 0       ? sums.exposedAllGatherNs
                        : open[ReduceScatter] > 0 ? sums.exposedReduceScatterNs
                        : open[AllReduce] > 0     ? sums.exposedAllReduceNs
                                                  : sums.exposedOtherCommunicationNs;
        part += ns;
    } else if (open[Copy] > 0) {
        sums.exposedCopyNs += ns;
    } else {
        sums.idleNs += ns;
        int64_t &part = open[Peer] > 0 ? sums.idlePeerNs : open[Host] > 0 ? sums.idleHostNs : sums.idleOtherNs;
        part += ns;
    }
}

} // namespace

StepSums waterfallOf(std::span<const TimedSpan> spans, int64_t startNs, int64_t endNs)
{
    std::vector<Edge> edges;
    edges.reserve(spans.size() * 2);
    std::map<int64_t, std::vector<TimedSpan>> nestingLanes;
    for (const TimedSpan &span : spans) {
        if (span.nests)
            nestingLanes[span.laneId].push_back(span);
        else
            addEdges(edges, span, startNs, endNs);
    }
    for (auto &[laneId, lane] : nestingLanes) {
        for (const TimedSpan &piece : innermostPieces(std::move(lane)))
            addEdges(edges, piece, startNs, endNs);
    }
    std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) { return a.timeNs < b.timeNs; });

    StepSums sums;
    sums.wallNs = std::max<int64_t>(endNs - startNs, 0);
    std::array<int32_t, kParts> open{};
    int64_t cursorNs = startNs;
    for (const Edge &edge : edges) {
        if (edge.timeNs > cursorNs)
            addStretch(sums, open, edge.timeNs - cursorNs);
        cursorNs = std::max(cursorNs, edge.timeNs);
        open[static_cast<size_t>(edge.part)] += edge.change;
    }
    if (endNs > cursorNs)
        addStretch(sums, open, endNs - cursorNs);
    return sums;
}

std::vector<TimedSpan> innermostPieces(std::vector<TimedSpan> lane)
{
    // A parent that starts with its child comes first, so that the child lies above it on the stack.
    std::sort(lane.begin(), lane.end(), [](const TimedSpan &a, const TimedSpan &b) {
        return a.startNs != b.startNs ? a.startNs < b.startNs : a.endNs > b.endNs;
    });
    std::vector<TimedSpan> pieces;
    std::vector<size_t> stack;
    int64_t cursorNs = 0;
    const auto emitTopUntil = [&](int64_t untilNs) {
        TimedSpan piece = lane[stack.back()];
        piece.startNs = std::max(cursorNs, piece.startNs);
        piece.endNs = std::min(piece.endNs, untilNs);
        if (piece.startNs < piece.endNs)
            pieces.push_back(piece);
        cursorNs = std::max(cursorNs, piece.endNs);
    };
    const auto closeEndedBy = [&](int64_t timeNs) {
        while (!stack.empty() && lane[stack.back()].endNs <= timeNs) {
            emitTopUntil(timeNs);
            stack.pop_back();
        }
    };
    for (size_t i = 0; i < lane.size(); ++i) {
        if (lane[i].endNs <= lane[i].startNs)
            continue;
        closeEndedBy(lane[i].startNs);
        if (!stack.empty())
            emitTopUntil(lane[i].startNs);
        cursorNs = lane[i].startNs;
        stack.push_back(i);
    }
    closeEndedBy(std::numeric_limits<int64_t>::max());
    return pieces;
}

std::vector<Interval> uniteIntervals(std::vector<Interval> intervals)
{
    std::erase_if(intervals, [](const Interval &interval) { return interval.endNs <= interval.startNs; });
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval &a, const Interval &b) { return a.startNs < b.startNs; });
    std::vector<Interval> united;
    for (const Interval &interval : intervals) {
        if (!united.empty() && interval.startNs <= united.back().endNs)
            united.back().endNs = std::max(united.back().endNs, interval.endNs);
        else
            united.push_back(interval);
    }
    return united;
}

int64_t uncoveredNs(std::span<const Interval> united, int64_t startNs, int64_t endNs)
{
    if (endNs <= startNs)
        return 0;
    int64_t uncovered = endNs - startNs;
    auto it = std::partition_point(united.begin(), united.end(),
                                   [&](const Interval &interval) { return interval.endNs <= startNs; });
    for (; it != united.end() && it->startNs < endNs; ++it)
        uncovered -= std::min(it->endNs, endNs) - std::max(it->startNs, startNs);
    return uncovered;
}

StepSums &StepSums::operator+=(const StepSums &other)
{
    wallNs += other.wallNs;
    computeNs += other.computeNs;
    communicationNs += other.communicationNs;
    overlappedCommunicationNs += other.overlappedCommunicationNs;
    exposedCommunicationNs += other.exposedCommunicationNs;
    copyNs += other.copyNs;
    exposedCopyNs += other.exposedCopyNs;
    idleNs += other.idleNs;
    exposedAllGatherNs += other.exposedAllGatherNs;
    exposedReduceScatterNs += other.exposedReduceScatterNs;
    exposedAllReduceNs += other.exposedAllReduceNs;
    exposedOtherCommunicationNs += other.exposedOtherCommunicationNs;
    optimizerNs += other.optimizerNs;
    idleHostNs += other.idleHostNs;
    idlePeerNs += other.idlePeerNs;
    idleOtherNs += other.idleOtherNs;
    return *this;
}

std::optional<double> StepSums::communicationShareOfDeviceTime() const
{
    const int64_t deviceNs = computeNs + communicationNs + copyNs;
    if (deviceNs == 0)
        return std::nullopt;
    return static_cast<double>(communicationNs) / static_cast<double>(deviceNs);
}

std::optional<double> StepSums::exposedCommunicationShare() const
{
    if (wallNs == 0)
        return std::nullopt;
    return static_cast<double>(exposedCommunicationNs) / static_cast<double>(wallNs);
}

} // namespace shardscope::store
