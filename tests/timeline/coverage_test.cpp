// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/timeline/random_spans.h"
#include "ui/timeline/coverage.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

TEST(Coverage, EveryColumnAgreesWithALoopOverAllSpans)
{
    const std::vector<SpanRecord> records = randomStream(9000, 21);
    SpanTrack track;
    track.append(records);
    const int64_t end = records.back().endNs();
    for (const TimeRange range :
         {TimeRange{0, end}, {end / 3, end / 3 + 5000}, {end / 2, end / 2 + 300'000}, {-999, 5000}}) {
        const std::vector<Column> columns = coverageOf(track, range, 640);
        ASSERT_EQ(columns.size(), 640u);
        Busy sum;
        for (int i = 0; i < 640; ++i) {
            const TimeRange column{columnStartNs(range, 640, i), columnStartNs(range, 640, i + 1)};
            ASSERT_EQ(columns[size_t(i)].busy, bruteBusy(records, column)) << i;
            ASSERT_LE(columns[size_t(i)].busy.totalNs(), column.durationNs());
            sum += columns[size_t(i)].busy;
        }
        EXPECT_EQ(sum, bruteBusy(records, range));
    }
}

TEST(Coverage, ASpanOfNoLengthIsCountedInOneColumn)
{
    SpanRecord record;
    record.startNs = 500;
    SpanTrack track;
    track.append(std::span(&record, 1));
    const std::vector<Column> columns = coverageOf(track, {0, 1000}, 10);
    for (size_t i = 0; i < 10; ++i)
        EXPECT_EQ(columns[i].spans, i == 5 ? 1u : 0u) << i;
}

TEST(Coverage, WideSpansAreCountedWhereTheyAreDrawn)
{
    SpanRecord wide;
    wide.startNs = 100;
    wide.durationNs = 400;
    SpanRecord narrow;
    narrow.startNs = 500;
    narrow.durationNs = 10;
    SpanTrack track;
    track.append(std::vector{wide, narrow});
    const std::vector<Column> columns = coverageOf(track, {0, 1000}, 10);
    for (size_t i = 0; i < 10; ++i)
        EXPECT_EQ(columns[i].wide, i >= 1 && i <= 4 ? 1u : 0u) << i;
    EXPECT_EQ(columns[5].spans, 1u);
}

// What PROFILER.md asks of the structure: ten million spans within bounds of memory, and a view of them that looks at
// few. Only facts are asserted; a time would fail on a busy machine.
TEST(Coverage, TenMillionSpansStayWithinTheirBytesAndAddUp)
{
    constexpr size_t kBatch = 100'000, kBatches = 100;
    SpanTrack track;
    Busy expected;
    int64_t startNs = 0;
    for (size_t i = 0; i < kBatches; ++i) {
        const std::vector<SpanRecord> records = randomStream(kBatch, uint32_t(i), startNs);
        startNs = records.back().endNs();
        expected += bruteBusy(records, {0, startNs});
        track.append(records);
    }
    ASSERT_EQ(track.size(), kBatch * kBatches);
    EXPECT_LT(track.sizeBytes() / track.size(), 48u);
    for (const int columns : {1, 1920, 3840}) {
        Busy sum;
        uint64_t touched = 0;
        for (const Column &column : coverageOf(track, track.extent(), columns)) {
            sum += column.busy;
            touched += column.spans;
        }
        EXPECT_EQ(sum, expected);
        EXPECT_GE(touched, track.size());
        EXPECT_LE(touched, track.size() + uint64_t(columns));
    }
}

} // namespace
} // namespace shardscope::ui::timeline
