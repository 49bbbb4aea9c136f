// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/range_summary.h"

#include <map>
#include <tuple>

namespace shardscope::ui::timeline {

namespace {

using Key = std::tuple<int32_t, SpanCategory, LaneKind>;
using Totals = std::map<Key, RangeSummary::Total>;

struct Part
{
    int64_t startNs;
    int64_t endNs;
    RangeSummary::Total *total;
};

/// The lane's spans with their part in the range, parents before children.
std::vector<Part> partsOf(const Lane &lane, TimeRange range, Totals &totals)
{
    std::vector<Part> parts;
    for (const SpanTrack &track : lane.tracks()) {
        const SpanPosition from = track.firstTouching(range.startNs);
        track.forEach(from, track.firstFrom(range.endNs, from), [&](SpanPosition p) {
            const SpanChunk &chunk = track.chunk(p);
            const TimeRange part = TimeRange{chunk.startNs(p.index), chunk.endNs(p.index)}.cutTo(range);
            RangeSummary::Total &total = totals[{chunk.name(p.index), chunk.category(p.index), lane.info.kind}];
            parts.push_back({part.startNs, part.endNs, &total});
        });
    }
    if (lane.tracks().size() > 1) {
        std::stable_sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
            return a.startNs != b.startNs ? a.startNs < b.startNs : a.endNs > b.endNs;
        });
    }
    return parts;
}

void addLane(const Lane &lane, TimeRange range, Totals &totals)
{
    const bool nests = lane.info.kind != LaneKind::Stream;
    std::vector<Part> open;
    for (const Part &part : partsOf(lane, range, totals)) {
        const int64_t lengthNs = part.endNs - part.startNs;
        RangeSummary::Total &total = *part.total;
        ++total.count;
        total.totalNs += lengthNs;
        total.selfNs += lengthNs;
        total.longestNs = std::max(total.longestNs, lengthNs);
        if (!nests)
            continue;
        while (!open.empty() && open.back().endNs <= part.startNs)
            open.pop_back();
        if (!open.empty())
            open.back().total->selfNs -= std::min(part.endNs, open.back().endNs) - part.startNs;
        open.push_back(part);
    }
}

bool counts(const RankTimeline &rank, const std::vector<int> &globalRanks)
{
    if (globalRanks.empty())
        return true;
    return rank.rank && std::find(globalRanks.begin(), globalRanks.end(), *rank.rank) != globalRanks.end();
}

} // namespace

Result<std::shared_ptr<const RangeSummary>> summarize(std::shared_ptr<const Snapshot> snapshot, TimeRange range,
                                                      const std::vector<int> &globalRanks,
                                                      const store::CancelToken &cancel)
{
    auto summary = std::make_shared<RangeSummary>();
    summary->snapshot = snapshot;
    summary->range = range;
    Totals totals;
    for (uint32_t r = 0; r < snapshot->ranks.size(); ++r) {
        const RankTimeline &rank = snapshot->ranks[r];
        if (!counts(rank, globalRanks))
            continue;
        summary->ranks.push_back({r, labelOf(*snapshot, rank), sumsOf(*rank.activity, range)});
        for (const auto &lane : rank.lanes) {
            if (cancel.cancelled())
                return fail("cancelled");
            addLane(*lane, range, totals);
        }
    }
    for (auto &[key, total] : totals) {
        std::tie(std::ignore, total.category, total.kind) = key;
        total.name = snapshot->nameOf(std::get<0>(key));
        summary->totals.push_back(std::move(total));
    }
    std::stable_sort(summary->totals.begin(), summary->totals.end(),
                     [](const auto &a, const auto &b) { return a.totalNs > b.totalNs; });
    return std::shared_ptr<const RangeSummary>(summary);
}

} // namespace shardscope::ui::timeline
