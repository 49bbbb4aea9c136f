// SPDX-License-Identifier: Apache-2.0
#include "core/train/step_commands.h"

#include <gtest/gtest.h>

using namespace shardscope::train;

namespace {

TEST(StepCommands, WordsSurviveASumOverRanks)
{
    const CommandSet asked{true, false, true};
    CommandWords sum = toWords(asked);
    const CommandWords other = toWords(asked); // a second rank asks for the same
    for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += other[i];
    EXPECT_EQ(fromWords(sum), asked);
    EXPECT_FALSE(fromWords(toWords({})).any());
}

TEST(StepCommands, AWordIsInForceTwoStepsLater)
{
    CommandSchedule schedule;
    schedule.heard(5, {.checkpoint = true});
    EXPECT_FALSE(schedule.takeDue(6).any());
    EXPECT_EQ(schedule.takeDue(7), (CommandSet{.checkpoint = true}));
    EXPECT_FALSE(schedule.takeDue(8).any());
}

TEST(StepCommands, WhatWasMissedIsTakenLater)
{
    CommandSchedule schedule;
    schedule.heard(1, {.pause = true});
    schedule.heard(2, {.checkpoint = true});
    EXPECT_EQ(schedule.takeDue(100), (CommandSet{.pause = true, .checkpoint = true}));
}

TEST(StepCommands, AStopIsSeenComing)
{
    CommandSchedule schedule;
    schedule.heard(1, {.pause = true});
    EXPECT_FALSE(schedule.stopIsComing());
    schedule.heard(2, {.stop = true});
    EXPECT_TRUE(schedule.stopIsComing());
    schedule.takeDue(4);
    EXPECT_FALSE(schedule.stopIsComing());
}

} // namespace
