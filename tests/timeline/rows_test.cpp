// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/timeline/snapshot_of.h"
#include "ui/timeline/hit_test.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

/// Two ranks; each a stream of two spans 0–400 and 600–1000 µs, and a thread with a nested call.
std::shared_ptr<const Snapshot> twoRanks()
{
    std::vector<std::vector<Lane>> ranks;
    for (int r = 0; r < 2; ++r) {
        ranks.push_back({laneWith(LaneKind::Stream, 1, "compute", {spanAt(0, 400'000, 1), spanAt(600'000, 400'000, 1)}),
                         laneWith(LaneKind::Thread, 2, "main", {spanAt(0, 900'000, 2), spanAt(100'000, 100'000, 3)})});
    }
    return snapshotOf(std::move(ranks));
}

struct Scene
{
    std::shared_ptr<const Snapshot> snapshot = twoRanks();
    RowLayout layout;
    TimeAxis axis;
    Scene()
    {
        layout.update(*snapshot);
        axis.setLimits({0, 1'000'000});
        axis.setWidth(1000);
        axis.fit();
    }
};

TEST(Rows, StandBelowEachOtherAndAreFoundByHeight)
{
    const Scene scene;
    ASSERT_EQ(scene.layout.rows().size(), 6u);
    int y = 0;
    for (size_t i = 0; i < 6; ++i) {
        const Row &row = scene.layout.rows()[i];
        EXPECT_EQ(row.y, y);
        EXPECT_EQ(scene.layout.rowAt(row.y), int(i));
        EXPECT_EQ(scene.layout.rowAt(row.y + row.height - 1), int(i));
        y += row.height + RowLayout::kGap;
    }
    EXPECT_EQ(scene.layout.height(), y);
    EXPECT_EQ(scene.layout.rowAt(y), -1);
    EXPECT_EQ(scene.layout.rowAt(-1), -1);
    EXPECT_EQ(scene.layout.rows()[2].height, 2 * RowLayout::kTrackHeight);
}

TEST(Rows, FoldingARankHidesItsLanesAndALaneSqueezesItsSubLanes)
{
    Scene scene;
    scene.layout.setRankFolded(0, true);
    scene.layout.setLaneFolded(1, 2, true);
    scene.layout.update(*scene.snapshot);
    ASSERT_EQ(scene.layout.rows().size(), 4u);
    EXPECT_TRUE(scene.layout.rows()[0].folded);
    EXPECT_EQ(scene.layout.rows()[3].height, RowLayout::kTrackHeight);
    EXPECT_DOUBLE_EQ(scene.layout.rows()[3].trackHeight, RowLayout::kTrackHeight / 2.0);
    scene.layout.setRankFolded(0, false);
    scene.layout.update(*scene.snapshot);
    EXPECT_EQ(scene.layout.rows().size(), 6u);
}

TEST(HitTest, FindsTheSpanUnderThePoint)
{
    const Scene scene;
    const Row &stream = scene.layout.rows()[1];
    const auto hit = hitTest(*scene.snapshot, scene.layout, scene.axis, 700, stream.y + 5);
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->count, 1u);
    EXPECT_EQ(scene.snapshot->record(hit->span).startNs, 600'000);
    EXPECT_FALSE(hitTest(*scene.snapshot, scene.layout, scene.axis, 500, stream.y + 5));
    const Row &thread = scene.layout.rows()[2];
    const auto nested = hitTest(*scene.snapshot, scene.layout, scene.axis, 150, thread.y + RowLayout::kTrackHeight + 4);
    ASSERT_TRUE(nested);
    EXPECT_EQ(scene.snapshot->record(nested->span).name, 3);
    const Row &second = scene.layout.rows()[4];
    EXPECT_EQ(hitTest(*scene.snapshot, scene.layout, scene.axis, 10, second.y + 5)->span.rank, 1u);
}

TEST(HitTest, ANarrowSpanIsFoundBesideItAndOfManyTheLongest)
{
    std::vector<SpanRecord> records{spanAt(500'000, 10)};
    for (int i = 0; i < 5; ++i)
        records.push_back(spanAt(800'000 + i * 20, i == 3 ? 15 : 5, i));
    auto snapshot = snapshotOf({{laneWith(LaneKind::Stream, 1, "s", records)}});
    RowLayout layout;
    layout.update(*snapshot);
    Scene scene;
    const int y = layout.rows()[1].y + 3;
    EXPECT_TRUE(hitTest(*snapshot, layout, scene.axis, 501.5, y));
    EXPECT_FALSE(hitTest(*snapshot, layout, scene.axis, 504, y));
    const auto many = hitTest(*snapshot, layout, scene.axis, 800.2, y);
    ASSERT_TRUE(many);
    EXPECT_EQ(many->count, 5u);
    EXPECT_EQ(snapshot->record(many->span).name, 3);
}

TEST(Neighbour, IsTheNextOfTheSameNameInTheLane)
{
    const Scene scene;
    const SpanRef first{0, 0, 0, {0, 0}};
    const auto next = neighbour(*scene.snapshot, first, true);
    ASSERT_TRUE(next);
    EXPECT_EQ(scene.snapshot->record(*next).startNs, 600'000);
    EXPECT_EQ(neighbour(*scene.snapshot, *next, false), first);
    EXPECT_FALSE(neighbour(*scene.snapshot, *next, true));
}

} // namespace
} // namespace shardscope::ui::timeline
