// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/activity.h"

#include "profiler/store/interval_sums.h"

namespace shardscope::ui::timeline {

namespace {

void collect(const Lane &lane, int64_t fromNs, std::vector<store::TimedSpan> &spans)
{
    std::vector<store::TimedSpan> own;
    for (const SpanTrack &track : lane.tracks()) {
        track.forEach(track.firstTouching(fromNs), track.end(), [&](SpanPosition p) {
            const SpanChunk &chunk = track.chunk(p);
            store::TimedSpan span;
            span.startNs = std::max(fromNs, chunk.startNs(p.index));
            span.endNs = chunk.endNs(p.index);
            span.category = chunk.category(p.index);
            own.push_back(span);
        });
    }
    if (lane.info.kind == LaneKind::Thread)
        own = store::innermostPieces(std::move(own));
    spans.insert(spans.end(), own.begin(), own.end());
}

struct Edge
{
    int64_t timeNs;
    int32_t change;
    SpanCategory category;
};

std::vector<Edge> edgesOf(const std::vector<store::TimedSpan> &spans)
{
    std::vector<Edge> edges;
    edges.reserve(spans.size() * 2);
    for (const store::TimedSpan &span : spans) {
        if (span.endNs <= span.startNs || span.category > SpanCategory::Copy)
            continue;
        edges.push_back({span.startNs, 1, span.category});
        edges.push_back({span.endNs, -1, span.category});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) { return a.timeNs < b.timeNs; });
    return edges;
}

/// Adds to pieces, or makes its last one longer.
void addPiece(std::vector<SpanRecord> &pieces, SpanCategory category, TimeRange range)
{
    if (!pieces.empty() && pieces.back().category == category && pieces.back().endNs() == range.startNs) {
        pieces.back().durationNs += range.durationNs();
        return;
    }
    SpanRecord piece;
    piece.startNs = range.startNs;
    piece.durationNs = range.durationNs();
    piece.category = category;
    pieces.push_back(piece);
}

struct Pieces
{
    std::vector<SpanRecord> exclusive, communication, copies;
};

Pieces piecesOf(const std::vector<Edge> &edges)
{
    Pieces pieces;
    std::array<int64_t, 3> open{};
    for (size_t i = 0; i < edges.size();) {
        const int64_t timeNs = edges[i].timeNs;
        for (; i < edges.size() && edges[i].timeNs == timeNs; ++i)
            open[static_cast<size_t>(edges[i].category)] += edges[i].change;
        if (i == edges.size())
            break;
        const TimeRange range{timeNs, edges[i].timeNs};
        const auto first = std::find_if(open.begin(), open.end(), [](int64_t count) { return count > 0; });
        if (first != open.end())
            addPiece(pieces.exclusive, static_cast<SpanCategory>(first - open.begin()), range);
        if (open[static_cast<size_t>(SpanCategory::Communication)] > 0)
            addPiece(pieces.communication, SpanCategory::Communication, range);
        if (open[static_cast<size_t>(SpanCategory::Copy)] > 0)
            addPiece(pieces.copies, SpanCategory::Copy, range);
    }
    return pieces;
}

/// Start of the piece that reaches over timeNs: it has to be done again from there.
int64_t startOver(const SpanTrack &track, int64_t timeNs)
{
    if (track.isEmpty())
        return timeNs;
    const SpanPosition touching = track.firstTouching(timeNs);
    return touching == track.end() ? timeNs : std::min(timeNs, track.chunk(touching).startNs(touching.index));
}

} // namespace

void Activity::eraseStartingIn(TimeRange range)
{
    exclusive.eraseStartingIn(range);
    communication.eraseStartingIn(range);
    copies.eraseStartingIn(range);
}

void updateActivity(Activity &activity, const std::vector<std::shared_ptr<const Lane>> &lanes, int64_t timeNs)
{
    // Any earlier start will do, as long as no piece of the three tracks reaches over it.
    int64_t fromNs = timeNs;
    for (int64_t before = INT64_MAX; before != fromNs;) {
        before = fromNs;
        for (const SpanTrack *track : {&activity.exclusive, &activity.communication, &activity.copies})
            fromNs = startOver(*track, fromNs);
    }
    activity.eraseStartingIn({fromNs, INT64_MAX});
    std::vector<store::TimedSpan> spans;
    for (const auto &lane : lanes) {
        if (lane->info.kind != LaneKind::Phase)
            collect(*lane, fromNs, spans);
    }
    const Pieces pieces = piecesOf(edgesOf(spans));
    activity.exclusive.append(pieces.exclusive);
    activity.communication.append(pieces.communication);
    activity.copies.append(pieces.copies);
}

ActivitySums sumsOf(const Activity &activity, TimeRange range)
{
    const Busy exclusive = activity.exclusive.busyIn(range);
    ActivitySums sums;
    sums.wallNs = range.durationNs();
    sums.computeNs = exclusive[SpanCategory::Compute];
    sums.exposedCommunicationNs = exclusive[SpanCategory::Communication];
    sums.exposedCopyNs = exclusive[SpanCategory::Copy];
    sums.communicationNs = activity.communication.busyIn(range)[SpanCategory::Communication];
    sums.copyNs = activity.copies.busyIn(range)[SpanCategory::Copy];
    sums.idleNs = sums.wallNs - sums.computeNs - sums.exposedCommunicationNs - sums.exposedCopyNs;
    return sums;
}

} // namespace shardscope::ui::timeline
