// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/store/recording.h"
#include "recording_fixture.h"
#include "tests/timeline/snapshot_of.h"
#include "ui/timeline/collective_links.h"
#include "ui/timeline/range_summary.h"
#include "ui/timeline/snapshot_builder.h"
#include "ui/timeline/span_details.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

std::shared_ptr<const Snapshot> snapshotFrom(store::Recording &recording,
                                             const std::shared_ptr<const Snapshot> &before = nullptr)
{
    auto snapshot = readSnapshot(recording, before, {});
    EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().text);
    return snapshot ? *snapshot : nullptr;
}

std::vector<SpanRecord> recordsOf(const Lane &lane)
{
    std::vector<SpanRecord> records;
    for (const SpanTrack &track : lane.tracks())
        track.forEach(track.begin(), track.end(), [&](SpanPosition p) { records.push_back(track.record(p)); });
    std::sort(records.begin(), records.end(), comesBefore);
    return records;
}

void expectEqualCalls(const Snapshot &a, const Snapshot &b)
{
    ASSERT_EQ(a.collectives->size(), b.collectives->size());
    for (size_t i = 0; i < a.collectives->size(); ++i) {
        const store::CollectiveCall &one = (*a.collectives)[i], &other = (*b.collectives)[i];
        EXPECT_EQ(one.communicator, other.communicator);
        EXPECT_EQ(one.sequence, other.sequence);
        EXPECT_EQ(one.lastStartNs(), other.lastStartNs());
        EXPECT_EQ(one.parts.size(), other.parts.size());
    }
    for (size_t r = 0; r < a.ranks.size(); ++r)
        EXPECT_EQ(*a.ranks[r].callOf, *b.ranks[r].callOf);
}

void expectEqual(const Snapshot &a, const Snapshot &b)
{
    ASSERT_EQ(a.ranks.size(), b.ranks.size());
    EXPECT_EQ(a.extent, b.extent);
    EXPECT_EQ(a.spans, b.spans);
    EXPECT_EQ(a.deleted, b.deleted);
    EXPECT_EQ(a.newest, b.newest);
    expectEqualCalls(a, b);
    for (size_t r = 0; r < a.ranks.size(); ++r) {
        ASSERT_EQ(a.ranks[r].lanes.size(), b.ranks[r].lanes.size());
        for (size_t l = 0; l < a.ranks[r].lanes.size(); ++l) {
            EXPECT_EQ(a.ranks[r].lanes[l]->info.name, b.ranks[r].lanes[l]->info.name);
            EXPECT_EQ(recordsOf(*a.ranks[r].lanes[l]), recordsOf(*b.ranks[r].lanes[l]));
        }
        EXPECT_EQ(sumsOf(*a.ranks[r].activity, a.extent), sumsOf(*b.ranks[r].activity, b.extent));
    }
}

class SnapshotOfDevice : public testing::TestWithParam<bool>
{
};
INSTANTIATE_TEST_SUITE_P(CudaAndCpu, SnapshotOfDevice, testing::Bool());

TEST_P(SnapshotOfDevice, HoldsEveryLaneOfEveryRankAndItsStepsSums)
{
    const test::TemporaryFolder folder;
    const test::FixtureOptions options{.cuda = GetParam()};
    ASSERT_TRUE(test::writeFixtureRecording(folder.path() / "run", options));
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording) << recording.error().text;
    const auto snapshot = snapshotFrom(*recording);
    ASSERT_TRUE(snapshot);
    ASSERT_EQ(snapshot->ranks.size(), 2u);
    int64_t written = 0;
    for (const store::ProcessInfo &process : snapshot->catalog->processes)
        written += process.spansWritten;
    EXPECT_EQ(snapshot->spans, static_cast<uint64_t>(written));
    EXPECT_EQ(labelOf(*snapshot, snapshot->ranks[1]), "rank 1");
    EXPECT_EQ(snapshot->ranks[0].lanes.front()->info.kind, LaneKind::Phase);
    // What the writer summed up step by step is what the timeline tells of the same range.
    for (const RankTimeline &rank : snapshot->ranks) {
        ASSERT_EQ(rank.steps->size(), 4u);
        for (const store::StepInfo &step : *rank.steps) {
            ASSERT_TRUE(step.sums && step.endNs);
            const ActivitySums sums = sumsOf(*rank.activity, {step.startNs, *step.endNs});
            EXPECT_EQ(sums.computeNs, step.sums->computeNs);
            EXPECT_EQ(sums.exposedCommunicationNs, step.sums->exposedCommunicationNs);
            EXPECT_EQ(sums.communicationNs, step.sums->communicationNs);
            EXPECT_EQ(sums.exposedCopyNs, step.sums->exposedCopyNs);
            EXPECT_EQ(sums.idleNs, step.sums->idleNs);
        }
    }
}

TEST(Snapshot, ACollectiveIsLinkedAcrossRanksWithItsWait)
{
    const test::TemporaryFolder folder;
    ASSERT_TRUE(test::writeFixtureRecording(folder.path() / "run", {.ranks = 3}));
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    const auto snapshot = snapshotFrom(*recording);
    ASSERT_FALSE(snapshot->collectives->empty());
    for (const store::CollectiveCall &call : *snapshot->collectives) {
        const std::vector<SpanRef> spans = linkedSpans(*snapshot, call);
        ASSERT_EQ(spans.size(), 3u);
        for (uint32_t r = 0; r < 3; ++r) {
            EXPECT_EQ(spans[r].rank, r);
            const SpanRecord record = snapshot->record(spans[r]);
            EXPECT_EQ(record.category, SpanCategory::Communication);
            EXPECT_EQ(snapshot->callOf(r, record.collective), &call);
            EXPECT_EQ(waitOf(record, call).durationNs(), (2 - int64_t(r)) * 10'000);
        }
        const auto bandwidth = bandwidthOf(call);
        ASSERT_TRUE(bandwidth);
        const double factor = call.operation == Operation::AllReduce ? 4.0 / 3 : 2.0 / 3;
        EXPECT_NEAR(bandwidth->busBytesPerSecond / bandwidth->algorithmBytesPerSecond, factor, 1e-12);
    }
    const SpanDetails details = detailsOf(*snapshot, linkedSpans(*snapshot, snapshot->collectives->front()).front());
    QStringList names;
    for (const auto &[name, value] : details.facts)
        names << name;
    for (const char *wanted : {"Unit", "Duration", "Step", "Collective", "Bus bandwidth", "Exposed", "Transfer"})
        EXPECT_TRUE(names.contains(QLatin1String(wanted))) << wanted;
    const auto rows = recording->sql(details.sql.toStdString());
    ASSERT_TRUE(rows) << rows.error().text;
    EXPECT_EQ(rows->rows.size(), 1u);
}

TEST(Snapshot, GrowingWithALiveRecordingIsReadingItWhole)
{
    const test::TemporaryFolder folder;
    auto live = test::LiveFixture::start(folder.path() / "run", {.steps = 6, .finish = false});
    ASSERT_TRUE(live) << live.error().text;
    ASSERT_TRUE(live->writeStep());
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    auto snapshot = snapshotFrom(*recording);
    for (int i = 1; i < 6; ++i) {
        ASSERT_TRUE(live->writeStep());
        const uint64_t before = snapshot->spans;
        snapshot = snapshotFrom(*recording, snapshot);
        EXPECT_GT(snapshot->spans, before);
    }
    const auto same = snapshotFrom(*recording, snapshot);
    EXPECT_EQ(same->ranks[0].lanes[0], snapshot->ranks[0].lanes[0]) << "what has not changed is shared";
    ASSERT_TRUE(live->finish());
    auto again = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(again);
    expectEqual(*snapshotFrom(*recording, snapshot), *snapshotFrom(*again));
}

TEST(Snapshot, StepsThatTheRetentionDeletedVanishLive)
{
    const test::TemporaryFolder folder;
    test::FixtureOptions options{.steps = 8, .finish = false};
    options.retention = {.keepSteps = 2, .keepFirst = 1, .maxBytes = 0};
    auto live = test::LiveFixture::start(folder.path() / "run", options);
    ASSERT_TRUE(live);
    ASSERT_TRUE(live->writeStep());
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    auto snapshot = snapshotFrom(*recording);
    for (int i = 1; i < 8; ++i) {
        ASSERT_TRUE(live->writeStep());
        snapshot = snapshotFrom(*recording, snapshot);
    }
    auto again = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(again);
    const auto whole = snapshotFrom(*again);
    EXPECT_EQ(whole->ranks[0].steps->size(), 8u);
    expectEqual(*snapshot, *whole);
    // The first step and the newest are kept; what lies between is told as deleted.
    const auto &steps = *whole->ranks[0].steps;
    ASSERT_EQ(whole->deleted.size(), 1u);
    EXPECT_EQ(whole->deleted[0].range.startNs, steps[1].startNs);
    EXPECT_EQ(whole->deleted[0].first, steps[1].number);
    EXPECT_EQ(whole->deleted[0].last, std::prev(std::find_if(steps.begin() + 1, steps.end(), [](const auto &step) {
                                          return step.spansKept;
                                      }))->number);
    EXPECT_EQ(whole->newest, (TimeRange{whole->deleted[0].range.endNs, whole->extent.endNs}));
    EXPECT_TRUE(steps.back().spansKept);
    EXPECT_LE(whole->newest.durationNs(), 4 * options.stepNs);
}

/// Steps so far apart that what is read on begins after the first ones.
TEST(Snapshot, ReadingOnKeepsTheCallsFromLongBefore)
{
    const test::TemporaryFolder folder;
    const test::FixtureOptions options{.steps = 5, .stepNs = 20'000'000'000, .finish = false};
    auto live = test::LiveFixture::start(folder.path() / "run", options);
    ASSERT_TRUE(live);
    ASSERT_TRUE(live->writeStep());
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    auto snapshot = snapshotFrom(*recording);
    for (int i = 1; i < 5; ++i) {
        ASSERT_TRUE(live->writeStep());
        snapshot = snapshotFrom(*recording, snapshot);
    }
    auto again = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(again);
    expectEqual(*snapshot, *snapshotFrom(*again));
}

TEST(Snapshot, ACallWithoutAnEndIsLookedForNearItsBeginOnly)
{
    std::vector<SpanRecord> records(2);
    records[0] = {.startNs = 1000, .durationNs = 10, .spanId = 1, .category = SpanCategory::Communication};
    records[1] = {.startNs = 60'000'000'000, .durationNs = 500, .spanId = 2, .category = SpanCategory::Communication};
    records[0].collective = records[1].collective = 7;
    std::vector<std::vector<Lane>> ranks(1);
    ranks[0].push_back(laneWith(LaneKind::Stream, 1, "communication", records));
    const auto snapshot = snapshotOf(std::move(ranks));
    store::CollectiveCall call;
    call.parts.push_back({.process = snapshot->ranks[0].process, .collectiveId = 7, .enqueuedNs = 900});
    const std::vector<SpanRef> spans = linkedSpans(*snapshot, call);
    ASSERT_EQ(spans.size(), 1u);
    EXPECT_EQ(snapshot->record(spans[0]).spanId, 1);
}

TEST(Snapshot, APickedSpanIsFoundInTheNextSnapshot)
{
    const test::TemporaryFolder folder;
    auto live = test::LiveFixture::start(folder.path() / "run", {.steps = 3, .finish = false});
    ASSERT_TRUE(live);
    ASSERT_TRUE(live->writeStep());
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    const auto before = snapshotFrom(*recording);
    ASSERT_TRUE(live->writeStep());
    const auto after = snapshotFrom(*recording, before);
    const SpanRef ref{1, 2, 0, {0, 1}};
    const auto found = after->find(*before, ref);
    ASSERT_TRUE(found);
    EXPECT_EQ(after->record(*found).spanId, before->record(ref).spanId);
}

TEST(Snapshot, AMissingRankIsNoHindrance)
{
    const test::TemporaryFolder folder;
    ASSERT_TRUE(test::writeFixtureRecording(folder.path() / "run", {.ranks = 3, .skipRanks = {1}}));
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    const auto snapshot = snapshotFrom(*recording);
    ASSERT_EQ(snapshot->ranks.size(), 2u);
    EXPECT_EQ(labelOf(*snapshot, snapshot->ranks[1]), "rank 2");
    const store::CollectiveCall &call = snapshot->collectives->front();
    const std::vector<SpanRef> spans = linkedSpans(*snapshot, call);
    ASSERT_EQ(spans.size(), 2u);
    // Nobody knows when the missing rank came: no wait is made up.
    EXPECT_EQ(call.lastStartNs().has_value(), !waitOf(snapshot->record(spans[0]), call).isEmpty());
}

TEST(Snapshot, ReadingStopsWhenCancelled)
{
    const test::TemporaryFolder folder;
    ASSERT_TRUE(test::writeFixtureRecording(folder.path() / "run"));
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    store::CancelToken cancel;
    cancel.cancel();
    EXPECT_FALSE(readSnapshot(*recording, nullptr, cancel));
}

TEST(Snapshot, CancellingAfterTheLanesStopsTheCollectives)
{
    const test::TemporaryFolder folder;
    ASSERT_TRUE(test::writeFixtureRecording(folder.path() / "run"));
    auto recording = store::Recording::open(folder.path() / "run");
    ASSERT_TRUE(recording);
    store::CancelToken cancel;
    const auto cancelAtEnd = [&cancel](double share) {
        if (share >= 1)
            cancel.cancel();
    };
    EXPECT_FALSE(readSnapshot(*recording, nullptr, cancel, cancelAtEnd));
    EXPECT_TRUE(cancel.cancelled());
}

} // namespace
} // namespace shardscope::ui::timeline
