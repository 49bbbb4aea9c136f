// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/span_track.h"

#include <algorithm>
#include <cassert>

namespace shardscope::ui::timeline {

namespace {

std::vector<SpanRecord> recordsOf(const SpanChunk &chunk, uint32_t from, uint32_t to)
{
    std::vector<SpanRecord> records;
    records.reserve(to - from);
    for (uint32_t i = from; i < to; ++i)
        records.push_back(chunk.record(i));
    return records;
}

} // namespace

TimeRange SpanTrack::extent() const
{
    if (isEmpty())
        return {};
    return {m_chunks.front()->startNs(0), m_chunks.back()->endNs(m_chunks.back()->size() - 1)};
}

size_t SpanTrack::sizeBytes() const
{
    size_t bytes = sizeof(*this) + m_chunks.capacity() * sizeof(m_chunks[0]) +
                   m_firstIndex.capacity() * sizeof(m_firstIndex[0]) + m_sums.capacity() * sizeof(m_sums[0]);
    for (const auto &chunk : m_chunks)
        bytes += chunk->sizeBytes();
    return bytes;
}

SpanPosition SpanTrack::next(SpanPosition p) const
{
    if (p.index + 1 < m_chunks[p.chunk]->size())
        return {p.chunk, p.index + 1};
    return {p.chunk + 1, 0};
}

SpanPosition SpanTrack::previous(SpanPosition p) const
{
    assert(p != begin());
    if (p.index > 0)
        return {p.chunk, p.index - 1};
    return {p.chunk - 1, m_chunks[p.chunk - 1]->size() - 1};
}

SpanPosition SpanTrack::firstFrom(int64_t timeNs, SpanPosition from) const
{
    if (from.chunk >= m_chunks.size())
        return end();
    const uint32_t inChunk = m_chunks[from.chunk]->firstFrom(timeNs, from.index);
    if (inChunk < m_chunks[from.chunk]->size())
        return {from.chunk, inChunk};
    // The last chunk that begins before timeNs has it, or else the next one begins with it.
    const auto first = m_chunks.begin() + from.chunk + 1;
    const auto later = std::lower_bound(first, m_chunks.end(), timeNs,
                                        [](const auto &chunk, int64_t time) { return chunk->startNs(0) < time; });
    const auto index = static_cast<uint32_t>(later - m_chunks.begin());
    if (later == first)
        return {index, 0};
    const uint32_t before = m_chunks[index - 1]->firstFrom(timeNs);
    if (before < m_chunks[index - 1]->size())
        return {index - 1, before};
    return {index, 0};
}

SpanPosition SpanTrack::firstTouching(int64_t timeNs) const
{
    const SpanPosition position = firstFrom(timeNs);
    if (position == begin())
        return position;
    const SpanPosition before = previous(position);
    return chunk(before).endNs(before.index) > timeNs ? before : position;
}

std::optional<SpanPosition> SpanTrack::at(int64_t timeNs) const
{
    const SpanPosition position = firstTouching(timeNs);
    if (position == end() || chunk(position).startNs(position.index) > timeNs)
        return std::nullopt;
    return position;
}

Busy SpanTrack::busy(SpanPosition from, SpanPosition to) const
{
    if (from >= to)
        return {};
    if (from.chunk == to.chunk)
        return chunk(from).busy(from.index, to.index);
    Busy sum = m_sums[to.chunk];
    sum -= m_sums[from.chunk];
    if (from.index > 0)
        sum -= chunk(from).busy(0, from.index);
    if (to.index > 0)
        sum += chunk(to).busy(0, to.index);
    return sum;
}

Busy SpanTrack::busyIn(TimeRange range) const
{
    const SpanPosition from = firstTouching(range.startNs);
    const SpanPosition to = firstFrom(range.endNs, from);
    if (from >= to)
        return {};
    Busy sum = busy(from, to);
    const SpanChunk &first = chunk(from);
    if (first.startNs(from.index) < range.startNs)
        sum[first.category(from.index)] -= range.startNs - first.startNs(from.index);
    const SpanPosition lastPosition = previous(to);
    const SpanChunk &last = chunk(lastPosition);
    if (last.endNs(lastPosition.index) > range.endNs)
        sum[last.category(lastPosition.index)] -= last.endNs(lastPosition.index) - range.endNs;
    return sum;
}

SpanPosition SpanTrack::longest(SpanPosition from, SpanPosition to) const
{
    assert(from < to);
    SpanPosition best = from;
    for (uint32_t c = from.chunk; c < m_chunks.size() && c <= to.chunk; ++c) {
        const uint32_t first = c == from.chunk ? from.index : 0;
        const uint32_t last = c == to.chunk ? to.index : m_chunks[c]->size();
        const int64_t bestNs = chunk(best).durationNs(best.index);
        if (first >= last || m_chunks[c]->longestNs() <= bestNs)
            continue;
        const uint32_t candidate = m_chunks[c]->longest(first, last);
        if (m_chunks[c]->durationNs(candidate) > bestNs)
            best = {c, candidate};
    }
    return best;
}

void SpanTrack::append(std::span<const SpanRecord> records)
{
    if (records.empty())
        return;
    std::vector<SpanRecord> joined;
    if (!m_chunks.empty() && m_chunks.back()->size() < SpanChunk::kCapacity) {
        joined = recordsOf(*m_chunks.back(), 0, m_chunks.back()->size());
        joined.insert(joined.end(), records.begin(), records.end());
        records = joined;
        m_chunks.pop_back();
    }
    while (!records.empty()) {
        const size_t count = std::min<size_t>(records.size(), SpanChunk::kCapacity);
        m_chunks.push_back(std::make_shared<const SpanChunk>(records.first(count)));
        records = records.subspan(count);
    }
    rebuildIndex();
}

void SpanTrack::eraseStartingIn(TimeRange range)
{
    const SpanPosition from = firstFrom(range.startNs);
    const SpanPosition to = firstFrom(range.endNs, from);
    if (from >= to)
        return;
    std::vector<std::shared_ptr<const SpanChunk>> kept(m_chunks.begin(), m_chunks.begin() + from.chunk);
    if (from.index > 0)
        kept.push_back(std::make_shared<const SpanChunk>(recordsOf(chunk(from), 0, from.index)));
    uint32_t next = to.chunk;
    if (to.index > 0) {
        kept.push_back(std::make_shared<const SpanChunk>(recordsOf(chunk(to), to.index, chunk(to).size())));
        ++next;
    }
    kept.insert(kept.end(), m_chunks.begin() + next, m_chunks.end());
    m_chunks = std::move(kept);
    rebuildIndex();
}

void SpanTrack::rebuildIndex()
{
    m_firstIndex.assign(1, 0);
    m_sums.assign(1, Busy{});
    m_longestNs = 0;
    for (const auto &chunk : m_chunks) {
        m_firstIndex.push_back(m_firstIndex.back() + chunk->size());
        Busy sum = m_sums.back();
        sum += chunk->busy();
        m_sums.push_back(sum);
        m_longestNs = std::max(m_longestNs, chunk->longestNs());
    }
}

} // namespace shardscope::ui::timeline
