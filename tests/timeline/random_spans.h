// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/lane.h"

#include <random>

namespace shardscope::ui::timeline {

/// Spans one after the other with gaps, some of no length, some long: what a stream looks like.
inline std::vector<SpanRecord> randomStream(size_t count, uint32_t seed, int64_t startNs = 0)
{
    std::mt19937 random(seed);
    std::vector<SpanRecord> records;
    records.reserve(count);
    int64_t timeNs = startNs;
    for (size_t i = 0; i < count; ++i) {
        SpanRecord record;
        timeNs += random() % 3 == 0 ? 0 : random() % 2000;
        record.startNs = timeNs;
        record.durationNs = random() % 50 == 0 ? 0 : random() % (random() % 40 == 0 ? 60'000 : 1500);
        record.spanId = static_cast<int64_t>(i) + 1;
        record.name = static_cast<int32_t>(random() % 20);
        record.unit = static_cast<int32_t>(random() % 6) - 1;
        record.category = static_cast<SpanCategory>(random() % 3);
        record.phase = static_cast<Phase>(random() % 5);
        timeNs = record.endNs();
        records.push_back(record);
    }
    return records;
}

/// Spans that overlap and nest in any way.
inline std::vector<SpanRecord> randomTangle(size_t count, uint32_t seed)
{
    std::mt19937 random(seed);
    std::vector<SpanRecord> records(count);
    for (size_t i = 0; i < count; ++i) {
        records[i].startNs = random() % (count * 100);
        records[i].durationNs = random() % 700;
        records[i].spanId = static_cast<int64_t>(i) + 1;
        records[i].category = static_cast<SpanCategory>(random() % 5);
    }
    std::sort(records.begin(), records.end(), comesBefore);
    return records;
}

inline Busy bruteBusy(const std::vector<SpanRecord> &records, TimeRange range)
{
    Busy busy;
    for (const SpanRecord &record : records)
        busy[record.category] += TimeRange{record.startNs, record.endNs()}.cutTo(range).durationNs();
    return busy;
}

} // namespace shardscope::ui::timeline
