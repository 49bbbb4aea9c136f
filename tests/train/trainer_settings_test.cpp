// SPDX-License-Identifier: Apache-2.0
// A `set` between two steps: in force on all ranks two steps after rank 0 heard of it, and the curve stays the same.
#include "core/config/configuration_file.h"
#include "core/config/live_change.h"
#include "tests/train/training_job.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::testing;
using control::Command;
using control::Order;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

class Settings : public ::testing::Test
{
protected:
    Settings()
    {
        m_options.worldSize = 3;
        m_options.configuration = TrainingJob::configurationFor(2);
        m_options.configuration.train.globalBatch = 3;
        m_options.configuration.train.microBatch = 1;
        m_options.configuration.train.steps = 16;
        m_options.configuration.parallel.ranks = 3;
    }
    /// Announces what `set` would make of the newest configuration.
    void announce(int64_t number, const config::LiveRequest &request)
    {
        m_newest = config::withChanges(m_newest.value_or(m_options.configuration), request, 0).value();
        m_options.script.changes[number] = {
            .number = number, .origin = "user", .text = "test", .fullJson = config::toJson(*m_newest).dump()};
    }
    /// Tells rank 0 of change n in step told[n − 1].
    JobOutcome runTelling(const std::vector<int64_t> &told)
    {
        m_options.script.poll = [told](int64_t poll) {
            train::CommandSet commands;
            for (size_t i = 0; i < told.size(); ++i) {
                if (told[i] == poll)
                    commands.change = static_cast<int64_t>(i) + 1;
            }
            return commands;
        };
        return m_job.run(m_options);
    }
    JobOutcome untouched()
    {
        JobOptions options = m_options;
        options.script = {};
        return TrainingJob().run(options);
    }
    /// (change, first step) as the ranks' supervisor would hear it from rank 0.
    static std::vector<std::pair<int64_t, int64_t>> configured(const JobOutcome &outcome)
    {
        std::vector<std::pair<int64_t, int64_t>> all;
        for (const auto &message : outcome.messages) {
            if (const auto *said = std::get_if<control::ConfiguredMessage>(&message))
                all.emplace_back(said->change, said->firstStep);
        }
        return all;
    }

    TrainingJob m_job;
    JobOptions m_options;
    std::optional<config::RunConfiguration> m_newest;
};

TEST_F(Settings, EveryStrategyInTurnLeavesTheCurveAsItIs)
{
    const JobOutcome expected = untouched();
    announce(1, {{"parallel.strategy=none"}, {}});
    announce(2, {{"parallel.strategy=grad_op", "parallel.prefetch=off"}, {"block.1.*:strategy=full"}});
    announce(3, {{"parallel.strategy=full", "parallel.gather_limit_bytes=1", "parallel.reduce_every=step"}, {}});
    const JobOutcome outcome = runTelling({2, 5, 9});
    EXPECT_THAT(configured(outcome), ElementsAre(std::pair(1, 4), std::pair(2, 7), std::pair(3, 11)));
    std::vector<std::optional<int64_t>> toggles;
    for (const JobEvent &event : outcome.events) {
        if (event.kind == EventKind::Toggle && event.rank == 1)
            toggles.push_back(event.step);
    }
    EXPECT_THAT(toggles, ElementsAre(4, 7, 11));
    ASSERT_EQ(outcome.steps.size(), expected.steps.size());
    for (size_t step = 0; step < expected.steps.size(); ++step) {
        EXPECT_NEAR(outcome.losses()[step] / expected.losses()[step], 1.0, 1e-5) << step;
        EXPECT_NEAR(outcome.norms()[step] / expected.norms()[step], 1.0, 1e-5) << step;
    }
}

TEST_F(Settings, TheRateIsTheNewOneFromThatStepOn)
{
    const JobOutcome expected = untouched();
    announce(1, {{"optimizer.learning_rate=5e-4"}, {}});
    const JobOutcome outcome = runTelling({6});
    for (const train::StepReport &step : outcome.steps) {
        const double before = expected.steps[static_cast<size_t>(step.number) - 1].result.learningRate;
        EXPECT_DOUBLE_EQ(step.result.learningRate, step.number < 8 ? before : before / 2) << step.number;
    }
}

TEST_F(Settings, ClippingAndCheckpointsAreTakenUp)
{
    announce(1, {{"optimizer.clip_norm=1e-6", "checkpoint.every=4", "checkpoint.keep=1"}, {}});
    const JobOutcome outcome = runTelling({1});
    const JobOutcome expected = untouched();
    EXPECT_NEAR(outcome.losses()[2] / expected.losses()[2], 1, 1e-5) << "the steps before are as ever";
    EXPECT_GT(outcome.losses().back(), expected.losses().back() + 0.05) << "steps so small learn little";
    std::vector<std::string> left;
    for (const auto &entry : std::filesystem::directory_iterator(m_job.checkpoints()))
        left.push_back(entry.path().filename());
    EXPECT_THAT(left, ElementsAre("step-000016"));
}

TEST_F(Settings, APausedJobTakesItUpBeforeTheNextStep)
{
    const JobOutcome expected = untouched();
    announce(1, {{"parallel.strategy=none"}, {}});
    std::vector<int64_t> pausedAfter;
    m_options.script.pausedAfter = &pausedAfter;
    m_options.script.whilePaused = {Order(Command::Set, 1), Command::Unpause};
    m_options.script.poll = [](int64_t poll) { return train::CommandSet{.pause = poll == 3}; };
    const JobOutcome outcome = m_job.run(m_options);
    EXPECT_THAT(pausedAfter, ElementsAre(4, 4));
    EXPECT_THAT(configured(outcome), ElementsAre(std::pair(1, 5)));
    EXPECT_NEAR(outcome.losses().back() / expected.losses().back(), 1.0, 1e-5);
}

TEST_F(Settings, WhatDoesNotFitEndsAllRanksWithTheReason)
{
    announce(1, {{}, {"block.0.attention.q.*:strategy=none"}});
    const JobOutcome outcome = runTelling({1});
    for (const auto &end : outcome.ends) {
        ASSERT_FALSE(end);
        EXPECT_THAT(end.error().text, HasSubstr("Change 1 of the configuration"));
        EXPECT_THAT(end.error().text, HasSubstr("about a part of block.0"));
    }
}

} // namespace
