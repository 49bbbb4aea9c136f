// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/hit_test.h"

namespace shardscope::ui::timeline {

std::optional<Hit> hitTest(const Snapshot &snapshot, const RowLayout &layout, const TimeAxis &axis, double x, int y)
{
    const int index = layout.rowAt(y);
    if (index < 0)
        return std::nullopt;
    const Row &row = layout.rows()[static_cast<size_t>(index)];
    if (row.kind != Row::Kind::Lane || y >= row.y + row.height)
        return std::nullopt;
    const Lane &lane = *snapshot.ranks[row.rank].lanes[row.lane];
    const uint32_t trackIndex = RowLayout::trackAt(row, y, lane.tracks().size());
    const SpanTrack &track = lane.tracks()[trackIndex];
    for (const double reachPx : {0.5, 2.0}) {
        const int64_t startNs = axis.timeAt(x - reachPx);
        const int64_t endNs = std::max(startNs + 1, axis.timeAt(x + reachPx));
        const SpanPosition from = track.firstTouching(startNs);
        const SpanPosition to = track.firstFrom(endNs, from);
        if (from < to) {
            const uint64_t count = track.ordinal(to) - track.ordinal(from);
            return Hit{{row.rank, row.lane, trackIndex, track.longest(from, to)}, count};
        }
    }
    return std::nullopt;
}

namespace {

std::optional<SpanPosition> nextInTrack(const SpanTrack &track, int32_t name, int64_t startNs)
{
    for (SpanPosition p = track.firstFrom(startNs + 1); p != track.end(); p = track.next(p)) {
        if (track.chunk(p).name(p.index) == name)
            return p;
    }
    return std::nullopt;
}

std::optional<SpanPosition> previousInTrack(const SpanTrack &track, int32_t name, int64_t startNs)
{
    for (SpanPosition p = track.firstFrom(startNs); p != track.begin();) {
        p = track.previous(p);
        if (track.chunk(p).name(p.index) == name)
            return p;
    }
    return std::nullopt;
}

} // namespace

std::optional<SpanRef> neighbour(const Snapshot &snapshot, const SpanRef &from, bool forward)
{
    const SpanRecord record = snapshot.record(from);
    const Lane &lane = snapshot.lane(from);
    std::optional<SpanRef> best;
    int64_t bestNs = 0;
    for (uint32_t t = 0; t < lane.tracks().size(); ++t) {
        const SpanTrack &track = lane.tracks()[t];
        const auto found = forward ? nextInTrack(track, record.name, record.startNs)
                                   : previousInTrack(track, record.name, record.startNs);
        if (!found)
            continue;
        const int64_t startNs = track.chunk(*found).startNs(found->index);
        if (!best || (forward ? startNs < bestNs : startNs > bestNs)) {
            best = SpanRef{from.rank, from.lane, t, *found};
            bestNs = startNs;
        }
    }
    return best;
}

} // namespace shardscope::ui::timeline
