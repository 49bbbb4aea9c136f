// SPDX-License-Identifier: Apache-2.0
#include "core/launch/command_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using shardscope::control::Command;
using shardscope::control::Order;
using shardscope::launch::CommandQueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CommandQueueTest : public testing::Test
{
protected:
    void add(const Order &order)
    {
        queue.add(order, [this, command = order.command](const Result<nlohmann::json> &result) {
            answers.push_back(std::string(toText(command)) + ": " + (result ? result->dump() : result.error().text));
        });
    }

    std::vector<std::string> sent;
    std::vector<std::string> answers;
    CommandQueue queue{2, [this](const Order &order, CommandQueue::Recipients recipients) {
                           sent.push_back(std::string(toText(order.command)) +
                                          (order.change ? fmt::format(" {}", order.change) : std::string()) +
                                          (recipients == CommandQueue::Recipients::All ? " to all" : " to rank 0"));
                       }};
};

TEST_F(CommandQueueTest, isPausedWhenEveryRankSaidSo)
{
    add(Command::Pause);
    EXPECT_THAT(sent, ElementsAre("pause to rank 0"));
    queue.rankPaused(0, 7);
    EXPECT_THAT(answers, IsEmpty());
    EXPECT_FALSE(queue.paused());
    queue.rankPaused(1, 7);
    EXPECT_TRUE(queue.paused());
    EXPECT_THAT(answers, ElementsAre("pause: {\"step\":7}"));
}

TEST_F(CommandQueueTest, aChangeIsInForceWhenEveryRankSaidSo)
{
    add({Command::Set, 1});
    add({Command::Set, 2});
    EXPECT_THAT(sent, ElementsAre("set 1 to rank 0"));
    queue.rankConfigured(0, 1, 5);
    queue.rankConfigured(0, 1, 5);
    queue.rankConfigured(1, 7, 5); // of no change that is under way
    EXPECT_THAT(answers, IsEmpty());
    queue.rankConfigured(1, 1, 5);
    EXPECT_THAT(answers, ElementsAre("set: {\"step\":5}"));
    EXPECT_THAT(sent, ElementsAre("set 1 to rank 0", "set 2 to rank 0"));
    queue.runEnded({}, "ended");
    EXPECT_EQ(answers.back(), "set: ended");
}

TEST_F(CommandQueueTest, pausedRanksTakeUpAChangeAndStayPaused)
{
    add(Command::Pause);
    queue.rankPaused(0, 3);
    queue.rankPaused(1, 3);
    add({Command::Set, 1});
    EXPECT_EQ(sent.back(), "set 1 to all");
    queue.rankConfigured(0, 1, 4);
    queue.rankPaused(0, 3);
    queue.rankConfigured(1, 1, 4);
    EXPECT_EQ(answers.back(), "set: {\"step\":4}");
    EXPECT_TRUE(queue.paused());
}

TEST_F(CommandQueueTest, holdsCommandsBackUntilTheOneBeforeIsInForce)
{
    add(Command::Pause);
    add(Command::Checkpoint);
    add(Command::Unpause);
    add(Command::Stop);
    EXPECT_THAT(sent, ElementsAre("pause to rank 0"));
    queue.rankPaused(0, 3);
    EXPECT_EQ(sent.size(), 1u) << "rank 1 does not wait on its channel yet";
    queue.rankPaused(1, 3);
    EXPECT_THAT(sent, ElementsAre("pause to rank 0", "checkpoint to all"));
    queue.checkpointWritten(3, "/c");
    EXPECT_EQ(sent.back(), "unpause to all");
    queue.rankRuns(1, 3);
    EXPECT_EQ(sent.back(), "unpause to all");
    queue.rankRuns(0, 3);
    EXPECT_EQ(sent.back(), "stop to rank 0");
    EXPECT_EQ(answers.size(), 3u);
    queue.runEnded({{"state", "done"}}, "over");
    EXPECT_EQ(answers.back(), "stop: {\"state\":\"done\"}");
}

TEST_F(CommandQueueTest, answersAtOnceWhereNothingIsToBeDone)
{
    add(Command::Unpause);
    EXPECT_THAT(sent, IsEmpty());
    EXPECT_EQ(answers.size(), 1u);
    add(Command::Pause);
    queue.rankPaused(0, 4);
    queue.rankPaused(1, 4);
    add(Command::Pause);
    EXPECT_THAT(sent, ElementsAre("pause to rank 0"));
    EXPECT_EQ(answers.back(), "pause: {\"step\":4}");
}

TEST_F(CommandQueueTest, tellsWhyACheckpointFailedAndGoesOn)
{
    queue.checkpointFailed("a periodic one, that nobody asked for");
    add(Command::Checkpoint);
    add(Command::Pause);
    queue.checkpointFailed("The disk is full.");
    EXPECT_THAT(answers, ElementsAre("checkpoint: The disk is full."));
    EXPECT_THAT(sent, ElementsAre("checkpoint to rank 0", "pause to rank 0"));
}

TEST_F(CommandQueueTest, takesNothingButStopsWhileItStops)
{
    add(Command::Stop);
    EXPECT_TRUE(queue.stopping());
    add(Command::Pause);
    EXPECT_THAT(answers, ElementsAre("pause: The run is stopping."));
    add(Command::Stop);
    EXPECT_THAT(sent, ElementsAre("stop to rank 0")) << "once is enough";
    queue.runEnded({}, "over");
    EXPECT_EQ(answers.size(), 3u);
}

TEST_F(CommandQueueTest, refusesWhatTheEndOfTheRunOvertook)
{
    add(Command::Pause);
    queue.rankPaused(0, 9);
    queue.runEnded({}, "The run has failed: rank 1 died.");
    EXPECT_THAT(answers, ElementsAre("pause: The run has failed: rank 1 died."));
}
