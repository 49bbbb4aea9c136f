// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/time_range.h"
#include "ui/timeline/span_chunk.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace shardscope::ui::timeline {

/// Where a span of a track is. Ordered as the spans are.
struct SpanPosition
{
    uint32_t chunk = 0;
    uint32_t index = 0;
    auto operator<=>(const SpanPosition &) const = default;
};

/// One sub-lane: spans sorted by start of which none overlaps another, as a sequence of immutable chunks. Copies share
/// the chunks, so that a snapshot of a live recording costs a list of pointers and what has changed at its end.
class SpanTrack
{
public:
    bool isEmpty() const { return m_chunks.empty(); }
    uint64_t size() const { return m_firstIndex.back(); }
    /// From the first start to the last end.
    TimeRange extent() const;
    size_t sizeBytes() const;

    const SpanChunk &chunk(SpanPosition p) const { return *m_chunks[p.chunk]; }
    SpanRecord record(SpanPosition p) const { return chunk(p).record(p.index); }
    SpanPosition begin() const { return {0, 0}; }
    SpanPosition end() const { return {static_cast<uint32_t>(m_chunks.size()), 0}; }
    SpanPosition next(SpanPosition p) const;
    SpanPosition previous(SpanPosition p) const; ///< p must not be begin()
    uint64_t ordinal(SpanPosition p) const { return m_firstIndex[p.chunk] + p.index; }

    /// The first span at or after from that starts at or after timeNs; end() where none does.
    SpanPosition firstFrom(int64_t timeNs, SpanPosition from = {}) const;
    /// The first span that has a part at or after timeNs (or starts there).
    SpanPosition firstTouching(int64_t timeNs) const;
    /// The span that covers timeNs.
    std::optional<SpanPosition> at(int64_t timeNs) const;
    /// Whole durations of the spans [from, to).
    Busy busy(SpanPosition from, SpanPosition to) const;
    /// Busy time inside range: spans at its ends count with their part in it.
    Busy busyIn(TimeRange range) const;
    /// The longest of [from, to), the first of equals; from < to.
    SpanPosition longest(SpanPosition from, SpanPosition to) const;
    int64_t longestNs() const { return m_longestNs; }

    /// Calls f(position) for each span of [from, to) that lasts at least minimumNs, in order.
    template <typename F>
    void forEachLonger(SpanPosition from, SpanPosition to, int64_t minimumNs, F &&f) const;
    template <typename F>
    void forEach(SpanPosition from, SpanPosition to, F &&f) const
    {
        forEachLonger(from, to, 0, f);
    }

    /// Takes spans that begin at or after the last one's end.
    void append(std::span<const SpanRecord> records);
    /// Forgets the spans that begin in range: a live reader reads them again, or the retention has deleted them.
    void eraseStartingIn(TimeRange range);

private:
    void rebuildIndex();

    std::vector<std::shared_ptr<const SpanChunk>> m_chunks;
    std::vector<uint64_t> m_firstIndex{0}; ///< of each chunk; the last one: the number of spans
    std::vector<Busy> m_sums{Busy{}};      ///< before each chunk; the last one: of all
    int64_t m_longestNs = 0;
};

template <typename F>
void SpanTrack::forEachLonger(SpanPosition from, SpanPosition to, int64_t minimumNs, F &&f) const
{
    for (uint32_t c = from.chunk; c < m_chunks.size() && c <= to.chunk; ++c) {
        const SpanChunk &chunk = *m_chunks[c];
        if (chunk.longestNs() < minimumNs)
            continue;
        const uint32_t first = c == from.chunk ? from.index : 0;
        const uint32_t last = c == to.chunk ? to.index : chunk.size();
        chunk.forEachLonger(first, last, minimumNs, [&](uint32_t i) { f(SpanPosition{c, i}); });
    }
}

} // namespace shardscope::ui::timeline
