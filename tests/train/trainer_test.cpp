// SPDX-License-Identifier: Apache-2.0
// The loop as a whole: the same curve at every number of ranks, the same bits in equal runs. (The grid of strategies,
// accumulation, clipping, optimizers and dtypes against one rank is in tests/model/ranks_test.cpp.)
#include "tests/train/training_job.h"

#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::testing;
using ::testing::HasSubstr;

namespace {

JobOutcome train(const TrainingJob &job, int worldSize, int64_t accumulation = 1,
                 const std::function<void(config::RunConfiguration &)> &change = {})
{
    JobOptions options;
    options.worldSize = worldSize;
    options.configuration = TrainingJob::configurationFor(worldSize, accumulation);
    if (change)
        change(options.configuration);
    return job.run(options);
}

TEST(TrainerTest, RanksDoNotChangeTheCurve)
{
    // The learning rate is the same at every number of ranks: it needs no division by the world size.
    const TrainingJob job;
    const JobOutcome reference = train(job, 1);
    ASSERT_EQ(reference.steps.size(), 20U);
    EXPECT_LT(reference.losses().back(), reference.losses().front() - 0.5);
    ASSERT_TRUE(reference.steps.back().result.validationLoss);
    for (const auto &[worldSize, accumulation] : {std::pair{1, 2}, {2, 1}, {4, 2}}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} micro-batches", worldSize, accumulation));
        const JobOutcome outcome = train(job, worldSize, accumulation);
        ASSERT_EQ(outcome.steps.size(), reference.steps.size());
        for (size_t step = 0; step < reference.steps.size(); ++step) {
            EXPECT_NEAR(outcome.losses()[step] / reference.losses()[step], 1.0, 1e-5) << step;
            EXPECT_NEAR(outcome.norms()[step] / reference.norms()[step], 1.0, 1e-5) << step;
            EXPECT_EQ(outcome.steps[step].result.tokens * worldSize, 8 * 32);
        }
        EXPECT_NEAR(*outcome.steps.back().result.validationLoss / *reference.steps.back().result.validationLoss, 1.0,
                    1e-5);
    }
}

TEST(TrainerTest, TheRateDividedByTheRanksIsAnotherCurve)
{
    // The other half of the claim: what a widespread article recommends is seen by these tolerances.
    const TrainingJob job;
    const JobOutcome reference = train(job, 1);
    const JobOutcome divided = train(job, 2, 1, [](config::RunConfiguration &c) { c.optimizer.learningRate /= 2; });
    EXPECT_GT(std::abs(divided.losses().back() / reference.losses().back() - 1.0), 1e-3);
}

TEST(TrainerTest, EqualRunsAreEqualToTheBitAndValidationChangesNothing)
{
    const TrainingJob job;
    const auto bf16 = [](config::RunConfiguration &c) { c.precision.compute = Precision::Bf16; };
    const JobOutcome first = train(job, 2, 1, bf16);
    const JobOutcome second = train(job, 2, 1, bf16);
    EXPECT_EQ(first.losses(), second.losses());
    EXPECT_EQ(first.norms(), second.norms());
    const JobOutcome validated = train(job, 2, 1, [&](config::RunConfiguration &c) {
        bf16(c);
        c.train.validateEvery = 3;
    });
    EXPECT_EQ(first.losses(), validated.losses());
    EXPECT_TRUE(validated.steps[2].result.validationLoss);
    EXPECT_FALSE(validated.steps[3].result.validationLoss);
    EXPECT_EQ(validated.steps[19].result.validationLoss, first.steps[19].result.validationLoss);
}

TEST(TrainerTest, TellsItsSupervisorOfEachStep)
{
    const TrainingJob job;
    const JobOutcome outcome = train(job, 2, 1, [](config::RunConfiguration &c) {
        c.train.steps = 2;
        c.checkpoint.atEnd = false;
    });
    ASSERT_EQ(outcome.messages.size(), 3U);
    const auto &ready = std::get<control::ReadyMessage>(outcome.messages[0]);
    EXPECT_EQ(ready.firstStep, 1);
    EXPECT_EQ(ready.steps, 2);
    const auto &step = std::get<control::StepMessage>(outcome.messages[2]);
    EXPECT_EQ(step.step, 2);
    EXPECT_EQ(step.loss, outcome.steps[1].result.loss);
    EXPECT_EQ(step.tokens, 4 * 32);
    EXPECT_GT(step.stepNs, 0);
}

TEST(TrainerTest, ABrokenLossEndsTheRunOnAllRanksAndNamesTheStep)
{
    const TrainingJob job;
    const JobOutcome outcome = train(job, 2, 1, [](config::RunConfiguration &c) {
        c.optimizer.kind = OptimizerKind::Sgd;
        c.optimizer.learningRate = 1e30;
        c.optimizer.minLearningRate = 1e30;
        c.optimizer.warmupSteps = 0;
        c.optimizer.clipNorm = 0;
    });
    for (const auto &end : outcome.ends) {
        ASSERT_FALSE(end);
        EXPECT_THAT(end.error().text, HasSubstr("of step 2 is NaN"));
        EXPECT_THAT(end.error().text, HasSubstr("optimizer.learning_rate"));
    }
    EXPECT_NE(outcome.steps.back().result.state, StepState::Ok);
}

} // namespace
