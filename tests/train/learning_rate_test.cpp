// SPDX-License-Identifier: Apache-2.0
#include "core/train/learning_rate.h"

#include <gtest/gtest.h>

using shardscope::train::LearningRateSchedule;

namespace {

TEST(LearningRate, ClimbsLinearlyThenFallsAsACosine)
{
    const LearningRateSchedule schedule{1.0, 0.2, 4, 104};
    EXPECT_DOUBLE_EQ(schedule.at(1), 0.25);
    EXPECT_DOUBLE_EQ(schedule.at(3), 0.75);
    EXPECT_DOUBLE_EQ(schedule.at(4), 1.0);
    EXPECT_DOUBLE_EQ(schedule.at(54), 0.6); // half-way: the mean of both ends
    EXPECT_DOUBLE_EQ(schedule.at(104), 0.2);
    EXPECT_DOUBLE_EQ(schedule.at(105), 0.2);
    for (int64_t step = 5; step <= 104; ++step)
        EXPECT_LT(schedule.at(step), schedule.at(step - 1)) << step;
}

TEST(LearningRate, WithoutWarmUpItBeginsNearThePeak)
{
    const LearningRateSchedule schedule{1.0, 0.0, 0, 100};
    EXPECT_NEAR(schedule.at(1), 1.0, 1e-3);
    EXPECT_NEAR(schedule.at(100), 0.0, 1e-12);
}

TEST(LearningRate, AWarmUpLongerThanTheRunNeverReachesThePeak)
{
    const LearningRateSchedule schedule{1.0, 0.1, 20, 10};
    EXPECT_DOUBLE_EQ(schedule.at(10), 0.5);
}

} // namespace
