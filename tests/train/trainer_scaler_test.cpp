// SPDX-License-Identifier: Apache-2.0
// A training's loop in fp16: skipped steps are told and no failure, and what is interrupted goes on with the scaler as
// it was. Moments of one dtype go on in another.
#include "tests/train/training_job.h"

#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::testing;

namespace {

constexpr int kRanksOfScaler = 2;

JobOptions shortRun()
{
    JobOptions options;
    options.worldSize = kRanksOfScaler;
    options.configuration = TrainingJob::configurationFor(kRanksOfScaler, 2);
    options.configuration.train.steps = 8;
    options.configuration.checkpoint.every = 5;
    return options;
}

std::vector<double> scales(const JobOutcome &outcome)
{
    std::vector<double> all;
    for (const train::StepReport &step : outcome.steps)
        all.push_back(step.result.lossScale.value_or(0));
    return all;
}

/// What rank 0 holds of all states, in fp32.
std::vector<at::Tensor> statesOf(model::Decoder &decoder, std::string_view but)
{
    std::vector<at::Tensor> all;
    for (const engine::StateShard &shard : decoder.engine().stateShards()) {
        if (shard.state != but)
            all.push_back(shard.data_S.to(at::kFloat, false, true));
    }
    return all;
}

TEST(TrainerScaler, SkippedStepsAreToldAndTheResumedGoOnToTheBit)
{
    const TrainingJob job;
    JobOptions options = shortRun();
    options.configuration.precision.compute = Precision::Fp16;
    options.configuration.precision.scaler.initial = 67108864; // the first steps overflow
    options.configuration.precision.scaler.growthInterval = 2;
    std::vector<at::Tensor> last;
    options.stepDone = [&](model::Decoder &decoder, int64_t step) {
        if (step == 8 && decoder.engine().communicator().rank() == 0)
            last = statesOf(decoder, "");
    };
    const JobOutcome whole = job.run(options);
    for (const auto &end : whole.ends)
        ASSERT_TRUE(end) << end.error().text;
    ASSERT_EQ(whole.steps.size(), 8U);
    EXPECT_EQ(whole.steps[0].result.state, StepState::Skipped);
    EXPECT_TRUE(std::isfinite(whole.losses()[0]));
    int64_t skipped = 0;
    for (size_t i = 0; i < 8; ++i) {
        const observe::StepResult &result = whole.steps[i].result;
        skipped += result.state == StepState::Skipped ? 1 : 0;
        EXPECT_EQ(std::isfinite(*result.gradientNorm), result.state == StepState::Ok);
        if (i > 0 && whole.steps[i - 1].result.state == StepState::Skipped) {
            EXPECT_EQ(*result.lossScale, *whole.steps[i - 1].result.lossScale / 2);
        }
    }
    EXPECT_GT(skipped, 0);
    EXPECT_LT(skipped, 8);
    const auto isToldAsSkipped = [](const control::RankMessage &message) {
        const auto *step = std::get_if<control::StepMessage>(&message);
        return step && step->step == 1 && step->state == StepState::Skipped && step->lossScale == 67108864;
    };
    EXPECT_TRUE(std::ranges::any_of(whole.messages, isToldAsSkipped));

    const std::vector<at::Tensor> expected = std::move(last);
    options.resumeFrom = job.checkpoints() / "step-000005";
    const JobOutcome resumed = job.run(options);
    ASSERT_EQ(resumed.steps.size(), 3U);
    const std::vector<double> all = scales(whole);
    EXPECT_EQ(scales(resumed), std::vector<double>(all.begin() + 5, all.end()));
    for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(resumed.losses()[i], whole.losses()[i + 5]);
    ASSERT_EQ(last.size(), expected.size());
    for (size_t i = 0; i < last.size(); ++i)
        EXPECT_TRUE(at::equal(last[i], expected[i]));
}

TEST(TrainerScaler, MomentsGoOnInAnotherDtype)
{
    for (const Precision from : {Precision::Fp32, Precision::Bf16}) {
        const TrainingJob job;
        JobOptions options = shortRun();
        options.configuration.precision.moments = from;
        std::vector<at::Tensor> atFive;
        options.stepDone = [&](model::Decoder &decoder, int64_t step) {
            if (step == 5 && decoder.engine().communicator().rank() == 0)
                atFive = statesOf(decoder, "master");
        };
        const JobOutcome whole = job.run(options);
        options.stepDone = nullptr;
        options.resumeFrom = job.checkpoints() / "step-000005";
        const bool toBf16 = from == Precision::Fp32;
        options.configuration.precision.moments = toBf16 ? Precision::Bf16 : Precision::Fp32;
        options.prepare = [&](model::Decoder &decoder) {
            if (decoder.engine().communicator().rank() != 0)
                return;
            const auto moments = statesOf(decoder, "master");
            ASSERT_EQ(moments.size(), atFive.size());
            for (size_t i = 0; i < moments.size(); ++i) {
                const at::Tensor expected = toBf16 ? atFive[i].to(at::kBFloat16).to(at::kFloat) : atFive[i];
                EXPECT_TRUE(at::equal(moments[i], expected));
            }
        };
        const JobOutcome resumed = job.run(options);
        ASSERT_EQ(resumed.steps.size(), 3U);
        EXPECT_EQ(resumed.losses()[0], whole.losses()[5]) << "the weights are the same";
        EXPECT_NEAR(resumed.losses()[2] / whole.losses()[7], 1.0, 1e-4);
    }
}

} // namespace
