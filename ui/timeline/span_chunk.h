// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/span_record.h"

#include <span>
#include <vector>

namespace shardscope::ui::timeline {

/// Up to kCapacity spans of one sub-lane, sorted by start, none overlapping another; immutable. Columns instead of
/// records, because painting reads only the first three, and columns that hold nothing take nothing.
///
/// Above the columns stands an implicit segment forest with a fan-out of 16. A node of its lowest level knows the busy
/// time by category and the longest of its 16 spans. Busy times are kept summed up from the chunk's start, so that a
/// range of any length costs one difference and at most two partly covered nodes; a tree of sums would visit up to 30
/// nodes a level for each pixel column.
class SpanChunk
{
public:
    static constexpr uint32_t kFanOut = 16;
    static constexpr uint32_t kCapacity = kFanOut * kFanOut * kFanOut;

    explicit SpanChunk(std::span<const SpanRecord> records);

    uint32_t size() const { return static_cast<uint32_t>(m_starts.size()); }
    int64_t startNs(uint32_t i) const { return m_starts[i]; }
    int64_t durationNs(uint32_t i) const { return m_durations[i]; }
    int64_t endNs(uint32_t i) const { return m_starts[i] + m_durations[i]; }
    SpanCategory category(uint32_t i) const { return static_cast<SpanCategory>(m_categories[i]); }
    std::optional<Phase> phase(uint32_t i) const;
    int32_t name(uint32_t i) const { return m_names[i]; }
    int32_t unit(uint32_t i) const { return m_units[i]; }
    int32_t collective(uint32_t i) const { return m_collectives.empty() ? kNone : m_collectives[i]; }
    SpanRecord record(uint32_t i) const;

    /// The first span at or after from that starts at or after timeNs; size() where none does.
    uint32_t firstFrom(int64_t timeNs, uint32_t from = 0) const;
    /// Whole durations of the spans [from, to).
    Busy busy(uint32_t from, uint32_t to) const;
    Busy busy() const { return m_sums.back(); }
    /// The longest of [from, to), the first of equals; from < to.
    uint32_t longest(uint32_t from, uint32_t to) const;
    int64_t longestNs() const { return m_longestNs; }

    /// Calls f(index) for each span of [from, to) that lasts at least minimumNs, in order, without looking at most of
    /// the others.
    template <typename F>
    void forEachLonger(uint32_t from, uint32_t to, int64_t minimumNs, F &&f) const;

    size_t sizeBytes() const;

private:
    uint32_t longestOfNode(const std::vector<uint16_t> &level, uint32_t from, uint32_t to) const;

    std::vector<int64_t> m_starts;
    std::vector<int64_t> m_durations;
    std::vector<uint8_t> m_categories;
    std::vector<uint8_t> m_phases; ///< 0x7f: unknown; the highest bit: open
    std::vector<int32_t> m_names;
    std::vector<int32_t> m_units;
    std::vector<int64_t> m_ids;
    std::vector<int32_t> m_collectives; ///< empty where no span has one; so the next two
    std::vector<int64_t> m_bytes;
    std::vector<int64_t> m_steps;

    std::vector<Busy> m_sums;          ///< m_sums[k]: of the first 16·k spans; the last one: of all
    std::vector<uint16_t> m_longest16; ///< index of the longest of each 16 spans
    std::vector<uint16_t> m_longest256;
    int64_t m_longestNs = 0;
};

template <typename F>
void SpanChunk::forEachLonger(uint32_t from, uint32_t to, int64_t minimumNs, F &&f) const
{
    constexpr uint32_t kWide = kFanOut * kFanOut;
    uint32_t i = from;
    while (i < to) {
        if (i % kWide == 0 && m_durations[m_longest256[i / kWide]] < minimumNs) {
            i += kWide;
            continue;
        }
        if (i % kFanOut == 0 && m_durations[m_longest16[i / kFanOut]] < minimumNs) {
            i += kFanOut;
            continue;
        }
        if (m_durations[i] >= minimumNs)
            f(i);
        ++i;
    }
}

} // namespace shardscope::ui::timeline
