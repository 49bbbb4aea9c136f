// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/collective_links.h"

#include <tuple>

namespace shardscope::ui::timeline {

namespace {

/// Where a part has no end yet, its spans are looked for this far from its begin.
constexpr int64_t kOpenNs = 30'000'000'000;

/// A rank's part may have several spans: the call on its thread, the kernel on its stream, its bracket in a phase lane.
using Preference = std::tuple<bool, bool, int64_t>;

Preference preferenceOf(const Lane &lane, const SpanRecord &record)
{
    return {record.category == SpanCategory::Communication, lane.info.kind == LaneKind::Stream, record.durationNs};
}

std::optional<SpanRef> spanOf(const Snapshot &snapshot, uint32_t rank, const store::CollectivePart &part)
{
    const auto id = static_cast<int32_t>(part.collectiveId);
    const int64_t startNs = std::min(part.enqueuedNs, part.startedNs.value_or(part.enqueuedNs));
    const int64_t endNs =
        std::max(part.enqueuedNs, part.endedNs.value_or(part.startedNs.value_or(part.enqueuedNs) + kOpenNs)) + 1;
    std::optional<SpanRef> best;
    Preference bestPreference;
    const auto &lanes = snapshot.ranks[rank].lanes;
    for (uint32_t l = 0; l < lanes.size(); ++l) {
        if (lanes[l]->info.kind == LaneKind::Phase)
            continue;
        for (uint32_t t = 0; t < lanes[l]->tracks().size(); ++t) {
            const SpanTrack &track = lanes[l]->tracks()[t];
            const SpanPosition from = track.firstTouching(startNs);
            track.forEach(from, track.firstFrom(endNs, from), [&](SpanPosition p) {
                if (track.chunk(p).collective(p.index) != id)
                    return;
                const Preference preference = preferenceOf(*lanes[l], track.record(p));
                if (!best || preference > bestPreference) {
                    best = SpanRef{rank, l, t, p};
                    bestPreference = preference;
                }
            });
        }
    }
    return best;
}

} // namespace

std::vector<SpanRef> linkedSpans(const Snapshot &snapshot, const store::CollectiveCall &call)
{
    std::vector<SpanRef> spans;
    for (uint32_t r = 0; r < snapshot.ranks.size(); ++r) {
        for (const store::CollectivePart &part : call.parts) {
            if (part.process != snapshot.ranks[r].process)
                continue;
            if (const auto span = spanOf(snapshot, r, part))
                spans.push_back(*span);
        }
    }
    return spans;
}

TimeRange waitOf(const SpanRecord &record, const store::CollectiveCall &call)
{
    const auto lastStartNs = call.lastStartNs();
    if (!lastStartNs)
        return {record.startNs, record.startNs};
    return TimeRange{record.startNs, *lastStartNs}.cutTo({record.startNs, record.endNs()});
}

std::optional<Bandwidth> bandwidthOf(const store::CollectiveCall &call)
{
    const auto transferNs = call.transferNs();
    if (!transferNs || *transferNs <= 0)
        return std::nullopt;
    const auto n = static_cast<double>(call.size);
    const auto bytes = static_cast<double>(std::max(call.inputBytes, call.outputBytes));
    double factor = 1;
    switch (call.operation) {
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAll:
        factor = (n - 1) / n;
        break;
    case Operation::AllReduce:
        factor = 2 * (n - 1) / n;
        break;
    case Operation::Broadcast:
    case Operation::Send:
    case Operation::Recv:
        break;
    }
    const double rate = bytes / (static_cast<double>(*transferNs) * 1e-9);
    return Bandwidth{rate, rate * factor};
}

} // namespace shardscope::ui::timeline
