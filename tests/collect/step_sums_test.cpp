// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/step_sums.h"

#include <gtest/gtest.h>

#include <map>

namespace shardscope::collect {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Rows
{
    std::map<int64_t, store::StepRow> byNumber;
    StepSumsKeeper::RowSink sink()
    {
        return [this](const store::StepRow &row) { byNumber[row.number] = row; };
    }
};

store::StepRow row(int64_t number, int64_t startNs)
{
    return {.stepId = number, .number = number, .startNs = startNs};
}

store::TimedSpan compute(int64_t startNs, int64_t endNs)
{
    return {.startNs = startNs, .endNs = endNs, .category = SpanCategory::Compute, .laneId = 1};
}

TEST(StepSums, WaitForTheDeviceAndFollowEachOther)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cuda, rows.sink());
    // The host enqueues two steps in no time; the device needs 100 for each.
    keeper.began(row(1, 1000), 0);
    keeper.deviceOwes(1);
    keeper.ended(1, 10, {.loss = 2.5, .tokens = 64}, 77);
    keeper.finish(1010);
    EXPECT_FALSE(rows.byNumber[1].endNs) << "nothing of it has come in";
    keeper.began(row(2, 1010), 10);
    keeper.deviceOwes(2);
    keeper.ended(2, 20, {}, std::nullopt);
    keeper.finish(1020);
    EXPECT_FALSE(rows.byNumber[1].endNs) << "its record is still owed";

    keeper.span(compute(1005, 1105));
    keeper.devicePaid(1, 1105);
    keeper.finish(1030);
    ASSERT_TRUE(rows.byNumber[1].sums);
    EXPECT_EQ(rows.byNumber[1].endNs, 1105);
    EXPECT_EQ(rows.byNumber[1].sums->wallNs, 105);
    EXPECT_EQ(rows.byNumber[1].sums->computeNs, 100);
    EXPECT_EQ(rows.byNumber[1].peakAllocatedBytes, 77);
    EXPECT_EQ(rows.byNumber[1].loss, 2.5);

    keeper.span(compute(1105, 1205));
    keeper.devicePaid(2, 1205);
    keeper.values(2, {.loss = 2.4});
    keeper.finish(1300);
    EXPECT_FALSE(rows.byNumber[2].endNs) << "no later call was seen: there may be more of it";
    keeper.finish(1300 + 2 * StepSumsKeeper::kQuietNs);
    ASSERT_TRUE(rows.byNumber[2].sums);
    EXPECT_EQ(rows.byNumber[2].startNs, 1105);
    EXPECT_EQ(rows.byNumber[2].endNs, 1205);
    EXPECT_EQ(rows.byNumber[2].sums->computeNs, 100);
}

/// The host has ended step 1, which the device owes a record of, and has begun step 2.
void goAStepAhead(StepSumsKeeper &keeper)
{
    keeper.began(row(1, 0), 0);
    keeper.deviceOwes(1);
    keeper.ended(1, 10, {}, std::nullopt);
    keeper.began(row(2, 10), 10);
    keeper.deviceOwes(2);
}

TEST(StepSums, DoNotWaitForeverForACallWithoutARecord)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cuda, rows.sink());
    goAStepAhead(keeper);
    keeper.finish(20);
    keeper.devicePaid(2, 30);
    keeper.values(1, {});
    keeper.finish(40);
    EXPECT_FALSE(rows.byNumber[1].endNs);
    keeper.finish(30 + 2 * StepSumsKeeper::kSettleNs);
    EXPECT_TRUE(rows.byNumber[1].endNs);
}

TEST(StepSums, AreNotFinishedByAHostThatIsAStepAhead)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cuda, rows.sink());
    goAStepAhead(keeper);
    keeper.deviceOwes(2);
    keeper.values(1, {});
    keeper.devicePaid(2, 0); // a call of the next step that put nothing on the device, which is in step 1 for seconds
    const int64_t laterNs = 4 * StepSumsKeeper::kSettleNs;
    keeper.finish(20);
    keeper.finish(laterNs);
    EXPECT_FALSE(rows.byNumber[1].endNs);
    keeper.devicePaid(1, laterNs - 5);
    keeper.finish(laterNs);
    EXPECT_EQ(rows.byNumber[1].endNs, laterNs - 5);
}

TEST(StepSums, AreNotFinishedBeforeTheDeviceToldTheirValues)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cuda, rows.sink());
    keeper.began(row(1, 0), 0);
    keeper.ended(1, 10, {}, std::nullopt);
    keeper.began(row(2, 10), 10);
    // No call has come in: their buffer waits for a device that is in step 1 for seconds.
    const int64_t laterNs = 4 * StepSumsKeeper::kQuietNs;
    keeper.finish(20);
    keeper.finish(laterNs);
    EXPECT_FALSE(rows.byNumber[1].endNs);
    EXPECT_FALSE(rows.byNumber[1].state);
    keeper.values(1, {.loss = 2.5});
    EXPECT_EQ(rows.byNumber[1].loss, 2.5) << "a rank that is killed now keeps its losses";
    EXPECT_EQ(rows.byNumber[1].state, StepState::Ok);
    keeper.finish(laterNs + 1);
    EXPECT_FALSE(rows.byNumber[1].endNs) << "the records are still on their way";
    keeper.deviceOwes(1);
    keeper.devicePaid(1, laterNs - 5);
    keeper.deviceOwes(2);
    keeper.finish(laterNs + 2);
    EXPECT_EQ(rows.byNumber[1].endNs, laterNs - 5);
}

TEST(StepSums, ALateRecordCorrectsThem)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cpu, rows.sink());
    keeper.began(row(1, 0), 0);
    keeper.ended(1, 100, {}, std::nullopt);
    keeper.finish(100);
    ASSERT_TRUE(rows.byNumber[1].sums);
    EXPECT_EQ(rows.byNumber[1].sums->computeNs, 0);
    keeper.span(compute(20, 50));
    keeper.finish(200);
    EXPECT_EQ(rows.byNumber[1].sums->computeNs, 30);
    EXPECT_EQ(rows.byNumber[1].endNs, 100);
}

TEST(StepSums, ValuesMayComeAfterTheEnd)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cpu, rows.sink());
    keeper.began(row(1, 0), 0);
    keeper.ended(1, 100, {}, std::nullopt);
    keeper.finish(100);
    keeper.values(1, {.loss = 3.0, .gradientNorm = 0.5, .state = StepState::Nan});
    EXPECT_EQ(rows.byNumber[1].loss, 3.0);
    EXPECT_EQ(rows.byNumber[1].gradientNorm, 0.5);
    EXPECT_EQ(rows.byNumber[1].state, StepState::Nan);
    EXPECT_TRUE(rows.byNumber[1].sums);
}

TEST(StepSums, AreAbsentWhereNothingIsMeasured)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cpu, rows.sink());
    store::StepRow off = row(1, 0);
    off.level = RecordLevel::Off;
    keeper.began(off, 0);
    keeper.span(compute(0, 50));
    keeper.ended(1, 100, {.loss = 1.0}, std::nullopt);
    keeper.finish(100);
    EXPECT_EQ(rows.byNumber[1].endNs, 100);
    EXPECT_EQ(rows.byNumber[1].loss, 1.0);
    EXPECT_FALSE(rows.byNumber[1].sums);
}

TEST(StepSums, ARunningStepStaysOpenAtTheEnd)
{
    Rows rows;
    StepSumsKeeper keeper(DeviceKind::Cpu, rows.sink());
    keeper.began(row(1, 0), 0);
    keeper.finish(100 * kSecond, true);
    EXPECT_FALSE(rows.byNumber[1].endNs);
}

TEST(StepSums, AStepWhoseEndWasLostDoesNotHoldUpTheOthers)
{
    for (const DeviceKind device : {DeviceKind::Cpu, DeviceKind::Cuda}) {
        Rows rows;
        StepSumsKeeper keeper(device, rows.sink());
        keeper.began(row(1, 1000), 0);
        keeper.span(compute(1010, 1050));
        keeper.began(row(2, 1100), 100); // and no word of step 1's end
        keeper.span(compute(1110, 1150));
        keeper.ended(2, 200, {.loss = 1.5}, std::nullopt);
        keeper.finish(1200);
        keeper.finish(1200 + 2 * StepSumsKeeper::kQuietNs);
        ASSERT_TRUE(rows.byNumber[1].sums);
        EXPECT_EQ(rows.byNumber[1].endNs, 1100);
        EXPECT_EQ(rows.byNumber[1].sums->computeNs, 40);
        EXPECT_FALSE(rows.byNumber[1].loss);
        ASSERT_TRUE(rows.byNumber[2].sums);
        EXPECT_EQ(rows.byNumber[2].endNs, 1200);
        EXPECT_EQ(rows.byNumber[2].sums->computeNs, 40);
        EXPECT_EQ(rows.byNumber[2].loss, 1.5);
    }
}

} // namespace
} // namespace shardscope::collect
