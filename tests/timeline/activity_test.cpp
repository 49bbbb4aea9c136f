// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/store/interval_sums.h"
#include "tests/timeline/random_spans.h"
#include "ui/timeline/activity.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

using Lanes = std::vector<std::shared_ptr<const Lane>>;

std::shared_ptr<const Lane> laneOf(LaneKind kind, const std::vector<SpanRecord> &records, int64_t id)
{
    Lane lane({id, "lane", kind, id});
    lane.append(records);
    return std::make_shared<const Lane>(std::move(lane));
}

/// Nested calls: each span lies within one of the level above.
std::vector<SpanRecord> randomCalls(size_t count, uint32_t seed)
{
    std::vector<SpanRecord> outer = randomStream(count, seed);
    std::mt19937 random(seed);
    std::vector<SpanRecord> all = outer;
    for (const SpanRecord &parent : outer) {
        if (parent.durationNs < 10)
            continue;
        SpanRecord child = parent;
        child.startNs += static_cast<int64_t>(random() % static_cast<uint32_t>(parent.durationNs / 2));
        child.durationNs = parent.durationNs / 3;
        child.category = static_cast<SpanCategory>(random() % 5);
        child.spanId += 1'000'000;
        all.push_back(child);
    }
    std::sort(all.begin(), all.end(), comesBefore);
    return all;
}

Lanes randomLanes()
{
    return {laneOf(LaneKind::Phase, randomStream(500, 30), 0), laneOf(LaneKind::Stream, randomStream(3000, 31), 1),
            laneOf(LaneKind::Stream, randomTangle(3000, 32), 2), laneOf(LaneKind::Thread, randomCalls(2000, 33), 3)};
}

std::vector<store::TimedSpan> timedSpans(const Lanes &lanes)
{
    std::vector<store::TimedSpan> spans;
    for (const auto &lane : lanes) {
        if (lane->info.kind == LaneKind::Phase)
            continue;
        for (const SpanTrack &track : lane->tracks()) {
            track.forEach(track.begin(), track.end(), [&](SpanPosition p) {
                const SpanRecord record = track.record(p);
                store::TimedSpan span;
                span.startNs = record.startNs;
                span.endNs = record.endNs();
                span.category = record.category;
                span.laneId = lane->info.laneId;
                span.nests = lane->info.kind == LaneKind::Thread;
                spans.push_back(span);
            });
        }
    }
    return spans;
}

TEST(Activity, AnyRangeAgreesWithTheStoresOwnSums)
{
    const Lanes lanes = randomLanes();
    Activity activity;
    updateActivity(activity, lanes, INT64_MIN);
    const std::vector<store::TimedSpan> spans = timedSpans(lanes);
    const int64_t end = lanes[1]->extent().endNs;
    std::mt19937 random(40);
    for (int i = 0; i < 25; ++i) {
        const int64_t from = static_cast<int64_t>(random() % end);
        const TimeRange range{from, from + 1 + static_cast<int64_t>(random() % (i % 2 ? 20'000 : end))};
        const store::StepSums expected = store::waterfallOf(spans, range.startNs, range.endNs);
        const ActivitySums sums = sumsOf(activity, range);
        ASSERT_EQ(sums.wallNs, expected.wallNs);
        ASSERT_EQ(sums.computeNs, expected.computeNs);
        ASSERT_EQ(sums.communicationNs, expected.communicationNs);
        ASSERT_EQ(sums.exposedCommunicationNs, expected.exposedCommunicationNs);
        ASSERT_EQ(sums.overlappedCommunicationNs(), expected.overlappedCommunicationNs);
        ASSERT_EQ(sums.copyNs, expected.copyNs);
        ASSERT_EQ(sums.exposedCopyNs, expected.exposedCopyNs);
        ASSERT_EQ(sums.idleNs, expected.idleNs);
    }
}

TEST(Activity, DoneAgainFromAnywhereItIsTheSame)
{
    const Lanes lanes = randomLanes();
    Activity whole;
    updateActivity(whole, lanes, INT64_MIN);
    const TimeRange all{0, lanes[1]->extent().endNs};
    for (const int64_t fromNs : {all.endNs / 7, all.endNs / 2, all.endNs - 5}) {
        Activity again = whole;
        updateActivity(again, lanes, fromNs);
        EXPECT_EQ(sumsOf(again, all), sumsOf(whole, all));
        EXPECT_EQ(again.exclusive.size(), whole.exclusive.size());
        EXPECT_EQ(again.communication.size(), whole.communication.size());
    }
}

} // namespace
} // namespace shardscope::ui::timeline
