// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/timeline/random_spans.h"
#include "tests/timeline/snapshot_of.h"
#include "ui/timeline/range_summary.h"
#include "ui/timeline/span_search.h"

#include <gtest/gtest.h>
#include <numeric>

namespace shardscope::ui::timeline {
namespace {

TEST(SpanQuery, TakesNameUnitAndDuration)
{
    const auto query = SpanQuery::parse("  gather kernel unit:block.3 >1.5ms");
    ASSERT_TRUE(query);
    EXPECT_EQ(query->name, "gather kernel");
    EXPECT_EQ(query->unit, "block.3");
    EXPECT_EQ(query->longerThanNs, 1'500'000);
    EXPECT_EQ(SpanQuery::parse(">20us")->longerThanNs, 20'000);
    EXPECT_EQ(SpanQuery::parse(">20µs")->longerThanNs, 20'000);
    EXPECT_EQ(SpanQuery::parse(">2")->longerThanNs, 2'000'000);
    EXPECT_TRUE(SpanQuery::parse("   ")->isEmpty());
    const auto wrong = SpanQuery::parse(">fast");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().text.find(">1.5ms"), std::string::npos);
}

TEST(Search, CountsWhatALoopCountsAndListsByStart)
{
    const std::vector<SpanRecord> one = randomStream(8000, 50), two = randomTangle(3000, 51);
    const auto snapshot =
        snapshotOf({{laneWith(LaneKind::Stream, 1, "s", one)}, {laneWith(LaneKind::Thread, 1, "t", two)}});
    for (const char *text : {"NAME 1", "name 7 unit:block.2", ">500ns", "name 1 >900ns", "nothing"}) {
        const SpanQuery query = *SpanQuery::parse(text);
        size_t expected = 0;
        for (const auto *records : {&one, &two}) {
            for (const SpanRecord &record : *records) {
                const std::string name(record.name < 0 ? "" : snapshot->nameOf(record.name));
                const std::string unit(snapshot->unitOf(record.unit));
                const std::string wanted = query.name == "NAME 1" ? "name 1" : query.name;
                expected += (wanted.empty() || name.find(wanted) != std::string::npos) &&
                            (query.unit.empty() || unit.find(query.unit) != std::string::npos) &&
                            record.durationNs >= query.longerThanNs;
            }
        }
        const auto result = search(snapshot, query, {});
        ASSERT_TRUE(result);
        EXPECT_EQ((*result)->count, expected) << text;
        EXPECT_EQ((*result)->hits.size(), expected);
        EXPECT_EQ(std::accumulate((*result)->bins.begin(), (*result)->bins.end(), size_t{0}), expected);
        EXPECT_TRUE(std::is_sorted((*result)->hits.begin(), (*result)->hits.end(),
                                   [](const auto &a, const auto &b) { return a.startNs < b.startNs; }));
        for (const auto &hit : (*result)->hits)
            ASSERT_EQ(snapshot->record(hit.span).startNs, hit.startNs);
    }
}

TEST(Search, StopsWhenCancelled)
{
    const auto snapshot = snapshotOf({{laneWith(LaneKind::Stream, 1, "s", randomStream(10, 1))}});
    store::CancelToken cancel;
    cancel.cancel();
    EXPECT_FALSE(search(snapshot, *SpanQuery::parse("name"), cancel));
    EXPECT_FALSE(summarize(snapshot, snapshot->extent, {}, cancel));
}

TEST(RangeSummary, TotalsCountPartsAndSelfTimeLeavesChildrenOut)
{
    const auto snapshot =
        snapshotOf({{laneWith(LaneKind::Thread, 1, "main",
                              {spanAt(0, 1000, 1), spanAt(100, 300, 2), spanAt(150, 50, 3), spanAt(600, 300, 2)})}});
    const auto summary = summarize(snapshot, {200, 700}, {}, {});
    ASSERT_TRUE(summary);
    const auto totalOf = [&](const std::string &name) {
        for (const auto &total : (*summary)->totals) {
            if (total.name == name)
                return total;
        }
        return RangeSummary::Total{};
    };
    EXPECT_EQ(totalOf("name 1").totalNs, 500);
    EXPECT_EQ(totalOf("name 1").selfNs, 500 - 200 - 100);
    EXPECT_EQ(totalOf("name 2").count, 2u);
    EXPECT_EQ(totalOf("name 2").totalNs, 300);
    EXPECT_EQ(totalOf("name 2").selfNs, 300);
    EXPECT_EQ(totalOf("name 2").longestNs, 200);
    EXPECT_EQ(totalOf("name 3").count, 0u);
    EXPECT_EQ((*summary)->ranks.at(0).sums.computeNs, 500);
}

TEST(RangeSummary, OnlyTheRanksThatAreSelectedCount)
{
    std::vector<std::vector<Lane>> ranks;
    for (int64_t r = 0; r < 3; ++r)
        ranks.push_back({laneWith(LaneKind::Stream, 1, "s", {spanAt(0, 100 * (r + 1), int32_t(r))})});
    const auto summary = summarize(snapshotOf(std::move(ranks)), {0, 300}, {1}, {});
    ASSERT_TRUE(summary);
    ASSERT_EQ((*summary)->ranks.size(), 1u);
    EXPECT_EQ((*summary)->ranks[0].label, "rank 1");
    EXPECT_EQ((*summary)->ranks[0].sums.computeNs, 200);
    ASSERT_EQ((*summary)->totals.size(), 1u);
}

} // namespace
} // namespace shardscope::ui::timeline
