// SPDX-License-Identifier: Apache-2.0
// Commands take effect at one step on all ranks: told to rank 0 in step k, in force before step k + 2.
#include "tests/train/training_job.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::testing;
using control::Command;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using train::CommandSet;
using train::Trainer;

namespace {

class Commands : public ::testing::Test
{
protected:
    Commands()
    {
        m_options.worldSize = 3;
        m_options.configuration = TrainingJob::configurationFor(2);
        m_options.configuration.train.globalBatch = 3;
        m_options.configuration.train.microBatch = 1;
        m_options.configuration.train.steps = 8;
    }
    JobOutcome runTelling(int64_t step, CommandSet commands)
    {
        m_options.script.poll = [=](int64_t poll) { return poll == step ? commands : CommandSet{}; };
        return m_job.run(m_options);
    }
    static std::vector<int64_t> checkpointsOf(const JobOutcome &outcome)
    {
        std::vector<int64_t> steps;
        for (const auto &message : outcome.messages) {
            if (const auto *checkpoint = std::get_if<control::CheckpointMessage>(&message))
                steps.push_back(checkpoint->step);
        }
        return steps;
    }

    /// Those that answer a command.
    static std::vector<int64_t> orderedOf(const JobOutcome &outcome)
    {
        std::vector<int64_t> steps;
        for (const auto &message : outcome.messages) {
            const auto *checkpoint = std::get_if<control::CheckpointMessage>(&message);
            if (checkpoint && checkpoint->ordered)
                steps.push_back(checkpoint->step);
        }
        return steps;
    }

    TrainingJob m_job;
    JobOptions m_options;
};

TEST_F(Commands, StopFinishesTheStepAndLeavesACheckpoint)
{
    const JobOutcome outcome = runTelling(3, {.stop = true});
    for (const auto &end : outcome.ends)
        EXPECT_EQ(end.value(), Trainer::End::Stopped);
    EXPECT_EQ(outcome.steps.back().number, 4);
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(4));
    EXPECT_TRUE(files::CheckpointFolder::readManifest(m_job.checkpoints() / "step-000004"));
}

TEST_F(Commands, AStopInTheLastStepsStillLeavesACheckpoint)
{
    const JobOutcome outcome = runTelling(8, {.stop = true});
    EXPECT_EQ(outcome.steps.back().number, 8);
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(8));
}

TEST_F(Commands, CheckpointGoesOn)
{
    m_options.configuration.checkpoint.atEnd = false;
    const JobOutcome outcome = runTelling(1, {.checkpoint = true});
    EXPECT_EQ(outcome.ends[2].value(), Trainer::End::Done);
    EXPECT_EQ(outcome.steps.size(), 8U);
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(2));
    ASSERT_FALSE(outcome.events.empty());
    for (const JobEvent &event : outcome.events)
        EXPECT_EQ(event.step, 2) << event.text;
}

TEST_F(Commands, TheLastStepLeavesACheckpointWithoutACommand)
{
    const JobOutcome outcome = runTelling(0, {});
    EXPECT_EQ(outcome.ends[0].value(), Trainer::End::Done);
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(8));
    EXPECT_TRUE(orderedOf(outcome).empty()) << "nobody asked for it";
    EXPECT_TRUE(files::CheckpointFolder::readManifest(m_job.checkpoints() / "step-000008"));
}

TEST_F(Commands, OnlyTheCheckpointThatACommandAskedForAnswersIt)
{
    m_options.configuration.checkpoint.every = 1;
    const JobOutcome outcome = runTelling(3, {.checkpoint = true});
    EXPECT_THAT(orderedOf(outcome), ElementsAre(4));
    EXPECT_GE(checkpointsOf(outcome).size(), 8U) << "the periodic ones are told too";
}

TEST_F(Commands, ACheckpointThatIsStillBeingWrittenDoesNotAnswerACommand)
{
    m_options.configuration.checkpoint.every = 1;
    m_options.configuration.checkpoint.asynchronous = true;
    EXPECT_THAT(orderedOf(runTelling(3, {.checkpoint = true})), ElementsAre(4));
}

TEST_F(Commands, PausedRanksWaitForTheirSupervisor)
{
    m_options.configuration.checkpoint.atEnd = false;
    std::vector<int64_t> pausedAfter;
    m_options.script.pausedAfter = &pausedAfter;
    m_options.script.whilePaused = {Command::Pause, Command::Checkpoint, Command::Unpause};
    const JobOutcome outcome = runTelling(2, {.pause = true});
    EXPECT_THAT(pausedAfter, ElementsAre(3, 3, 3));
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(3));
    EXPECT_EQ(outcome.steps.size(), 8U);
    EXPECT_EQ(outcome.ends[1].value(), Trainer::End::Done);
}

TEST_F(Commands, StopEndsAPause)
{
    m_options.script.whilePaused = {Command::Stop};
    const JobOutcome outcome = runTelling(2, {.pause = true});
    EXPECT_EQ(outcome.ends[0].value(), Trainer::End::Stopped);
    EXPECT_EQ(outcome.steps.back().number, 3);
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(3));
}

TEST_F(Commands, ACheckpointThatCannotBeWrittenIsAWarning)
{
    m_options.configuration.checkpoint.atEnd = false;
    std::ofstream(m_job.checkpoints()) << "a file where the folder should be";
    const JobOutcome outcome = runTelling(1, {.checkpoint = true});
    for (const auto &end : outcome.ends)
        EXPECT_EQ(end.value(), Trainer::End::Done);
    EXPECT_EQ(outcome.steps.size(), 8U);
    const auto warning = std::ranges::find_if(outcome.messages, [](const control::RankMessage &message) {
        return std::holds_alternative<control::WarningMessage>(message);
    });
    ASSERT_NE(warning, outcome.messages.end());
    EXPECT_THAT(std::get<control::WarningMessage>(*warning).text, HasSubstr("No checkpoint of step 2"));
    EXPECT_TRUE(std::get<control::WarningMessage>(*warning).ordered) << "who asked for it waits for an answer";
}

TEST_F(Commands, AStopWhoseCheckpointCannotBeWrittenFailsOnAllRanks)
{
    std::ofstream(m_job.checkpoints()) << "a file where the folder should be";
    const JobOutcome outcome = runTelling(1, {.stop = true});
    for (const auto &end : outcome.ends) {
        ASSERT_FALSE(end);
        EXPECT_THAT(end.error().text, HasSubstr("Can't make"));
    }
    EXPECT_EQ(outcome.steps.back().number, 2);
}

TEST_F(Commands, OnlyTheLastCheckpointsAreKept)
{
    m_options.configuration.checkpoint.every = 2;
    m_options.configuration.checkpoint.keep = 3;
    const JobOutcome outcome = m_job.run(m_options);
    EXPECT_THAT(checkpointsOf(outcome), ElementsAre(2, 4, 6, 8));
    std::vector<int64_t> left;
    for (const auto &info : files::CheckpointFolder(m_job.checkpoints()).whole())
        left.push_back(info.step);
    EXPECT_THAT(left, ElementsAre(4, 6, 8));
}

} // namespace
