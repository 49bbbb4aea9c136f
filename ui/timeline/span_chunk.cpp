// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/span_chunk.h"

#include <algorithm>
#include <cassert>

namespace shardscope::ui::timeline {

namespace {

constexpr uint8_t kOpenBit = 0x80;
constexpr uint8_t kNoPhase = 0x7f;

uint8_t packed(const SpanRecord &record)
{
    const uint8_t phase = record.phase ? static_cast<uint8_t>(*record.phase) : kNoPhase;
    return record.open ? phase | kOpenBit : phase;
}

template <typename T>
size_t bytesOf(const std::vector<T> &column)
{
    return column.capacity() * sizeof(T);
}

/// A column, or nothing where every record has the value that stands for nothing.
template <typename T, typename Member>
std::vector<T> optionalColumn(std::span<const SpanRecord> records, Member member)
{
    if (std::all_of(records.begin(), records.end(), [&](const SpanRecord &r) { return r.*member == kNone; }))
        return {};
    std::vector<T> column(records.size());
    std::transform(records.begin(), records.end(), column.begin(), [&](const SpanRecord &r) { return r.*member; });
    return column;
}

} // namespace

SpanChunk::SpanChunk(std::span<const SpanRecord> records)
    : m_collectives(optionalColumn<int32_t>(records, &SpanRecord::collective))
    , m_bytes(optionalColumn<int64_t>(records, &SpanRecord::bytes))
    , m_steps(optionalColumn<int64_t>(records, &SpanRecord::step))
{
    assert(!records.empty() && records.size() <= kCapacity);
    const size_t count = records.size();
    m_starts.reserve(count);
    m_durations.reserve(count);
    m_categories.reserve(count);
    m_phases.reserve(count);
    m_names.reserve(count);
    m_units.reserve(count);
    m_ids.reserve(count);
    m_sums.reserve(count / kFanOut + 2);
    m_sums.emplace_back();
    Busy sum;
    for (const SpanRecord &record : records) {
        assert(m_starts.empty() || record.startNs >= m_starts.back() + m_durations.back());
        m_starts.push_back(record.startNs);
        m_durations.push_back(record.durationNs);
        m_categories.push_back(static_cast<uint8_t>(record.category));
        m_phases.push_back(packed(record));
        m_names.push_back(record.name);
        m_units.push_back(record.unit);
        m_ids.push_back(record.spanId);
        sum[record.category] += record.durationNs;
        if (m_starts.size() % kFanOut == 0 || m_starts.size() == count)
            m_sums.push_back(sum);
    }
    for (uint32_t i = 0; i < count; i += kFanOut) {
        const auto first = m_durations.begin() + i;
        const auto last = m_durations.begin() + std::min<uint32_t>(i + kFanOut, size());
        m_longest16.push_back(static_cast<uint16_t>(std::max_element(first, last) - m_durations.begin()));
    }
    for (uint32_t i = 0; i < m_longest16.size(); i += kFanOut) {
        const uint32_t end = std::min<uint32_t>(i + kFanOut, static_cast<uint32_t>(m_longest16.size()));
        m_longest256.push_back(static_cast<uint16_t>(longestOfNode(m_longest16, i, end)));
    }
    m_longestNs = m_durations[longestOfNode(m_longest256, 0, static_cast<uint32_t>(m_longest256.size()))];
}

std::optional<Phase> SpanChunk::phase(uint32_t i) const
{
    const uint8_t phase = m_phases[i] & ~kOpenBit;
    return phase == kNoPhase ? std::nullopt : std::optional(static_cast<Phase>(phase));
}

SpanRecord SpanChunk::record(uint32_t i) const
{
    SpanRecord record;
    record.startNs = m_starts[i];
    record.durationNs = m_durations[i];
    record.spanId = m_ids[i];
    record.bytes = m_bytes.empty() ? kNone : m_bytes[i];
    record.step = m_steps.empty() ? kNone : m_steps[i];
    record.name = m_names[i];
    record.unit = m_units[i];
    record.collective = collective(i);
    record.category = category(i);
    record.phase = phase(i);
    record.open = (m_phases[i] & kOpenBit) != 0;
    return record;
}

uint32_t SpanChunk::firstFrom(int64_t timeNs, uint32_t from) const
{
    // Galloping: a painter asks for one pixel column after the other, and the next one is mostly near.
    uint32_t low = from;
    uint32_t step = 1;
    while (low + step <= size() && m_starts[low + step - 1] < timeNs) {
        low += step;
        step *= 2;
    }
    const auto begin = m_starts.begin() + low;
    const auto end = m_starts.begin() + std::min(size(), low + step);
    return static_cast<uint32_t>(std::lower_bound(begin, end, timeNs) - m_starts.begin());
}

Busy SpanChunk::busy(uint32_t from, uint32_t to) const
{
    Busy sum;
    const uint32_t firstNode = (from + kFanOut - 1) / kFanOut;
    const uint32_t lastNode = to / kFanOut;
    if (firstNode >= lastNode) {
        for (uint32_t i = from; i < to; ++i)
            sum[category(i)] += m_durations[i];
        return sum;
    }
    sum = m_sums[lastNode];
    sum -= m_sums[firstNode];
    for (uint32_t i = from; i < firstNode * kFanOut; ++i)
        sum[category(i)] += m_durations[i];
    for (uint32_t i = lastNode * kFanOut; i < to; ++i)
        sum[category(i)] += m_durations[i];
    return sum;
}

uint32_t SpanChunk::longest(uint32_t from, uint32_t to) const
{
    assert(from < to && to <= size());
    constexpr uint32_t kWide = kFanOut * kFanOut;
    uint32_t best = from;
    const auto consider = [&](uint32_t i) {
        if (m_durations[i] > m_durations[best])
            best = i;
    };
    for (uint32_t i = from; i < to;) {
        if (i % kWide == 0 && i + kWide <= to) {
            consider(m_longest256[i / kWide]);
            i += kWide;
        } else if (i % kFanOut == 0 && i + kFanOut <= to) {
            consider(m_longest16[i / kFanOut]);
            i += kFanOut;
        } else {
            consider(i++);
        }
    }
    return best;
}

uint32_t SpanChunk::longestOfNode(const std::vector<uint16_t> &level, uint32_t from, uint32_t to) const
{
    uint32_t best = level[from];
    for (uint32_t i = from + 1; i < to; ++i) {
        if (m_durations[level[i]] > m_durations[best])
            best = level[i];
    }
    return best;
}

size_t SpanChunk::sizeBytes() const
{
    return sizeof(*this) + bytesOf(m_starts) + bytesOf(m_durations) + bytesOf(m_categories) + bytesOf(m_phases) +
           bytesOf(m_names) + bytesOf(m_units) + bytesOf(m_ids) + bytesOf(m_collectives) + bytesOf(m_bytes) +
           bytesOf(m_steps) + bytesOf(m_sums) + bytesOf(m_longest16) + bytesOf(m_longest256);
}

} // namespace shardscope::ui::timeline
