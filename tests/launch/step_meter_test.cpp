// SPDX-License-Identifier: Apache-2.0
#include "core/launch/step_meter.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace shardscope;
using shardscope::control::StepMessage;
using shardscope::launch::StepMeter;

static StepMessage step(int64_t number, int64_t stepNs)
{
    return {.step = number,
            .steps = 20,
            .loss = 2.0,
            .tokens = 500,
            .stepNs = stepNs,
            .figures = {.peakAllocatedBytes = stepNs / 1000, .exposedCommunicationNs = stepNs / 4}};
}

TEST(StepMeter, countsAStepWhenAllRanksHaveReportedIt)
{
    StepMeter meter(2);
    run::RunStatus status;
    EXPECT_FALSE(meter.add(0, step(1, 1'000'000), status));
    EXPECT_FALSE(status.step);
    EXPECT_TRUE(meter.add(1, step(1, 2'000'000), status));
    EXPECT_EQ(status.step, 1);
    EXPECT_EQ(status.steps, 20);
    EXPECT_EQ(status.stepNs, 2'000'000) << "of the slowest rank";
    EXPECT_DOUBLE_EQ(status.tokensPerSecond.value(), 1000 / 2e-3);
    EXPECT_EQ(status.peakAllocatedBytes, 2000);
    EXPECT_DOUBLE_EQ(status.exposedCommunicationShare.value(), 0.25);
    EXPECT_EQ(status.lossTail.size(), 1u);
}

TEST(StepMeter, countsSkippedSteps)
{
    StepMeter meter(1);
    run::RunStatus status;
    StepMessage skipped = step(1, 1000);
    skipped.state = StepState::Skipped;
    skipped.lossScale = 65536;
    meter.add(0, skipped, status);
    EXPECT_EQ(status.stepState, StepState::Skipped);
    EXPECT_EQ(status.lossScale, 65536);
    EXPECT_EQ(status.skippedSteps, 1);
    meter.add(0, step(2, 1000), status);
    EXPECT_EQ(status.stepState, StepState::Ok);
    EXPECT_FALSE(status.lossScale);
    EXPECT_EQ(status.skippedSteps, 1);
}

TEST(StepMeter, leavesOutWhatARankDidNotMeasure)
{
    StepMeter meter(2);
    run::RunStatus status;
    StepMessage without = step(1, 1000);
    without.figures.exposedCommunicationNs.reset();
    without.figures.peakAllocatedBytes.reset();
    without.loss.reset();
    meter.add(0, without, status);
    meter.add(1, without, status);
    EXPECT_FALSE(status.exposedCommunicationShare);
    EXPECT_FALSE(status.peakAllocatedBytes);
    EXPECT_FALSE(status.loss);
    EXPECT_TRUE(std::isnan(status.lossTail.back()));
}

TEST(StepMeter, takesTheLastFiguresOnceAllRanksHaveSentThem)
{
    StepMeter meter(2);
    run::RunStatus status;
    StepMessage without = step(1, 1000);
    without.figures.exposedCommunicationNs.reset();
    meter.add(0, without, status);
    meter.add(1, without, status);
    meter.addLast(0, {.peakAllocatedBytes = 7, .exposedCommunicationNs = 100, .ofNs = 1000}, status);
    EXPECT_FALSE(status.exposedCommunicationShare) << "of one rank alone";
    meter.addLast(1, {.peakAllocatedBytes = 9, .exposedCommunicationNs = 300, .ofNs = 1000}, status);
    EXPECT_DOUBLE_EQ(status.exposedCommunicationShare.value(), 0.2);
    EXPECT_EQ(status.peakAllocatedBytes, 9);
    EXPECT_EQ(status.step, 1);
}

TEST(StepMeter, takesTheShareOfTheStepThatTheFiguresAreOf)
{
    StepMeter meter(1);
    run::RunStatus status;
    StepMessage message = step(2, 8'000'000);
    message.figures.exposedCommunicationNs = 1'000'000;
    message.figures.ofNs = 2'000'000;
    EXPECT_TRUE(meter.add(0, message, status));
    EXPECT_DOUBLE_EQ(status.exposedCommunicationShare.value(), 0.5);
}

TEST(StepMeter, goesOnWhereAMessageWasDropped)
{
    StepMeter meter(2);
    run::RunStatus status;
    meter.add(0, step(1, 1000), status);
    meter.add(0, step(2, 1000), status);
    EXPECT_TRUE(meter.add(1, step(2, 1000), status));
    EXPECT_FALSE(meter.add(1, step(3, 1000), status));
    EXPECT_TRUE(meter.add(0, step(3, 1000), status));
    EXPECT_FALSE(meter.add(7, step(3, 1000), status)) << "no such rank";
}

TEST(StepMeter, keepsTheLastSixtyFourLosses)
{
    StepMeter meter(1);
    run::RunStatus status;
    for (int64_t number = 1; number <= 100; ++number) {
        StepMessage message = step(number, 1000);
        message.loss = static_cast<double>(number);
        EXPECT_TRUE(meter.add(0, message, status));
    }
    ASSERT_EQ(status.lossTail.size(), 64u);
    EXPECT_EQ(status.lossTail.front(), 37.0);
    EXPECT_EQ(status.lossTail.back(), 100.0);
}
