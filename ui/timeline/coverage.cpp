// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/coverage.h"

#include <cmath>

namespace shardscope::ui::timeline {

int64_t columnStartNs(TimeRange range, int columns, int i)
{
    const double share = static_cast<double>(i) / columns;
    return range.startNs + static_cast<int64_t>(std::llround(share * static_cast<double>(range.durationNs())));
}

namespace {

/// Takes off what of the span lies outside of [startNs, endNs).
void cutBefore(const SpanTrack &track, SpanPosition p, int64_t startNs, Busy &busy)
{
    const SpanChunk &chunk = track.chunk(p);
    if (chunk.startNs(p.index) < startNs)
        busy[chunk.category(p.index)] -= startNs - chunk.startNs(p.index);
}

void cutAfter(const SpanTrack &track, SpanPosition p, int64_t endNs, Busy &busy)
{
    const SpanChunk &chunk = track.chunk(p);
    if (chunk.endNs(p.index) > endNs)
        busy[chunk.category(p.index)] -= chunk.endNs(p.index) - endNs;
}

/// Counts the rectangles in the columns that they touch; there are few in view, as they don't overlap.
void countWide(const SpanTrack &track, TimeRange range, std::vector<Column> &columns)
{
    const double nsPerColumn = static_cast<double>(range.durationNs()) / static_cast<double>(columns.size());
    const auto minimumNs = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(kRectanglePx * nsPerColumn)));
    const int last = static_cast<int>(columns.size()) - 1;
    const auto columnOf = [&](int64_t timeNs) {
        return std::clamp(static_cast<int>(static_cast<double>(timeNs - range.startNs) / nsPerColumn), 0, last);
    };
    const SpanPosition from = track.firstTouching(range.startNs);
    track.forEachLonger(from, track.firstFrom(range.endNs, from), minimumNs, [&](SpanPosition p) {
        const SpanChunk &chunk = track.chunk(p);
        const int end = columnOf(chunk.endNs(p.index) - 1);
        for (int i = columnOf(chunk.startNs(p.index)); i <= end; ++i)
            ++columns[static_cast<size_t>(i)].wide;
    });
}

} // namespace

std::vector<Column> coverageOf(const SpanTrack &track, TimeRange range, int columns)
{
    std::vector<Column> result(static_cast<size_t>(std::max(columns, 0)));
    if (columns <= 0 || range.isEmpty() || track.isEmpty())
        return result;
    SpanPosition next = track.firstFrom(range.startNs);
    for (int i = 0; i < columns; ++i) {
        const TimeRange column{columnStartNs(range, columns, i), columnStartNs(range, columns, i + 1)};
        SpanPosition from = next;
        if (from != track.begin()) {
            const SpanPosition before = track.previous(from);
            if (track.chunk(before).endNs(before.index) > column.startNs)
                from = before;
        }
        next = track.firstFrom(column.endNs, next);
        if (from >= next || column.isEmpty())
            continue;
        Column &out = result[static_cast<size_t>(i)];
        out.spans = static_cast<uint32_t>(track.ordinal(next) - track.ordinal(from));
        out.busy = track.busy(from, next);
        cutBefore(track, from, column.startNs, out.busy);
        cutAfter(track, track.previous(next), column.endNs, out.busy);
    }
    countWide(track, range, result);
    return result;
}

} // namespace shardscope::ui::timeline
