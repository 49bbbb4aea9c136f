// SPDX-License-Identifier: Apache-2.0
// A step whose numbers are none: it changes no weights, the first operation with one is named, and the run stops with a
// checkpoint or goes on.
#include "tests/train/training_job.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

/// Overwrites parameters of block 1, each with one value.
void fill(model::Decoder &decoder, const std::map<std::string, double> &values)
{
    engine::Engine &engine = decoder.engine();
    for (const auto &[name, value] : values) {
        const at::Tensor old = engine.gatherParameter("block.1." + name).value();
        ASSERT_TRUE(engine.loadParameter("block.1." + name, at::full_like(old, value)));
    }
}

/// Too large a product in forward; the same in backward alone, where forward multiplies it by zero.
const std::map<std::string, double> kTooLargeForward = {{"ffn.gate.weight", 1e38}};
const std::map<std::string, double> kTooLargeBackward = {
    {"ffn.gate.weight", 1e5}, {"ffn.up.weight", 0}, {"ffn.down.weight", 1e38}};
/// The same for fp16: every value of forward is within it, in backward none is that any scale would help.
const std::map<std::string, double> kTooLargeBackwardOfFp16 = {
    {"ffn.gate.weight", 400}, {"ffn.up.weight", 0}, {"ffn.down.weight", 1.5e4}};

at::Tensor weightOf(model::Decoder &decoder)
{
    return decoder.engine().gatherParameter("block.0.attention.q.weight").value();
}

class BrokenStep : public ::testing::TestWithParam<int>
{
protected:
    BrokenStep()
    {
        options.worldSize = GetParam();
        options.configuration = TrainingJob::configurationFor(options.worldSize);
        options.configuration.train.steps = 7;
    }
    /// After step 3.
    void spoilStep4(const std::map<std::string, double> &values)
    {
        options.stepDone = [values](model::Decoder &decoder, int64_t step) {
            if (step == 3)
                fill(decoder, values);
        };
    }
    void expectStopped(const JobOutcome &outcome, const std::string &what) const
    {
        for (const auto &end : outcome.ends) {
            ASSERT_FALSE(end);
            EXPECT_THAT(end.error().text, AllOf(HasSubstr("of step 4 is"), HasSubstr(what)));
            EXPECT_THAT(end.error().text, HasSubstr((job.checkpoints() / "step-000003").string()));
        }
        EXPECT_EQ(outcome.steps.size(), 4U);
        EXPECT_EQ(files::CheckpointFolder(job.checkpoints()).newest()->step, 3);
    }
    TrainingJob job;
    JobOptions options;
};

TEST_P(BrokenStep, inForwardStopsWithACheckpointOfTheStepBefore)
{
    spoilStep4(kTooLargeForward);
    const JobOutcome outcome = job.run(options);
    expectStopped(outcome, "appeared first in forward, block.1, ffn.gate_up (rank 0)");
    EXPECT_NE(outcome.steps.back().result.state, StepState::Ok);
    const auto event = std::ranges::find(outcome.events, EventKind::Nan, &JobEvent::kind);
    ASSERT_NE(event, outcome.events.end());
    EXPECT_EQ(event->step, 4);
    const auto detail = nlohmann::json::parse(event->detailJson);
    EXPECT_EQ(detail["step"], 4);
    EXPECT_EQ(detail["rank"], 0);
    EXPECT_EQ(detail["unit"], "block.1");
    EXPECT_EQ(detail["operation"], "ffn.gate_up");
    EXPECT_EQ(detail["direction"], "forward");
    EXPECT_EQ(detail["parameter"], nullptr);
    EXPECT_EQ(detail["skipped"], false);
    // Where the weights are mended, the run goes on from what was kept: step 4 with its own batch.
    options.resumeFrom = job.checkpoints() / "step-000003";
    options.stepDone = nullptr;
    options.prepare = [](model::Decoder &decoder) { fill(decoder, {{"ffn.gate.weight", 0.01}}); };
    const JobOutcome resumed = job.run(options);
    ASSERT_TRUE(resumed.ends[0]) << resumed.ends[0].error().text;
    EXPECT_EQ(resumed.steps.front().number, 4);
}

TEST_P(BrokenStep, inBackwardAloneIsNamedToo)
{
    spoilStep4(kTooLargeBackward);
    const JobOutcome outcome = job.run(options);
    expectStopped(outcome, "appeared first in backward, block.1, ffn.swiglu (rank 0)");
    EXPECT_TRUE(std::isfinite(*outcome.steps.back().result.loss));
    EXPECT_THAT(outcome.ends[0].error().text, HasSubstr("The gradient of step 4"));
}

TEST_P(BrokenStep, isLeftOutUnderSkip)
{
    options.configuration.train.onNan = OnNan::Skip;
    options.configuration.train.accumulation = GetParam() == 1 ? 2 : 1;
    options.configuration.train.microBatch = 4;
    at::Tensor before;
    at::Tensor after;
    options.stepDone = [&](model::Decoder &decoder, int64_t step) {
        const bool root = decoder.engine().communicator().rank() == 0;
        if (step == 3) {
            const at::Tensor weight = weightOf(decoder);
            fill(decoder, kTooLargeForward);
            if (root)
                before = weight;
        } else if (step == 4) {
            const at::Tensor weight = weightOf(decoder);
            if (root)
                after = weight;
        } else if (step == 5) {
            fill(decoder, {{"ffn.gate.weight", 0.01}}); // so that it can't be found in step 5 any more
        }
    };
    options.configuration.checkpoint.atEnd = false;
    const JobOutcome outcome = job.run(options);
    for (const auto &end : outcome.ends)
        ASSERT_TRUE(end) << end.error().text;
    ASSERT_EQ(outcome.steps.size(), 7U);
    for (const train::StepReport &step : outcome.steps)
        EXPECT_EQ(step.result.state == StepState::Ok, step.number != 4 && step.number != 5) << step.number;
    EXPECT_TRUE(at::equal(before, after)) << "step 4 changed weights";
    std::vector<std::string> warnings;
    for (const control::RankMessage &message : outcome.messages) {
        if (const auto *warning = std::get_if<control::WarningMessage>(&message))
            warnings.push_back(warning->text);
    }
    ASSERT_EQ(warnings.size(), 2U);
    EXPECT_THAT(warnings[0], AllOf(HasSubstr("of step 4 is"), HasSubstr("forward, block.1, ffn.gate_up (rank 0"),
                                   HasSubstr("goes on")));
    EXPECT_EQ(warnings[0].find("micro-batch 1 of 2") != std::string::npos, GetParam() == 1);
    EXPECT_THAT(warnings[1], HasSubstr("not when the step was run again"));
    EXPECT_EQ(outcome.events.size(), 2U * outcome.ends.size());
    EXPECT_EQ(nlohmann::json::parse(outcome.events.front().detailJson)["skipped"], true);
}

TEST_P(BrokenStep, countsForNoOptimizerStepAndLeavesItsBatchBehind)
{
    options.configuration.train.onNan = OnNan::Skip;
    options.configuration.checkpoint.every = 6;
    spoilStep4(kTooLargeForward);
    int64_t optimizerSteps = 0;
    const auto spoil = options.stepDone;
    options.stepDone = [&](model::Decoder &decoder, int64_t step) {
        spoil(decoder, step);
        if (step == 7 && decoder.engine().communicator().rank() == 0)
            optimizerSteps = decoder.engine().optimizerSteps();
    };
    const JobOutcome outcome = job.run(options);
    ASSERT_TRUE(outcome.ends[0]) << outcome.ends[0].error().text;
    EXPECT_EQ(optimizerSteps, 3);
    const auto manifest = files::CheckpointFolder::readManifest(job.checkpoints() / "step-000006").value();
    EXPECT_EQ(manifest.step, 6);
    EXPECT_EQ(manifest.optimizerSteps, 3);
    EXPECT_EQ(manifest.data.nextSample, 6 * 8);
}

TEST_P(BrokenStep, endsTheRunWhereTooManyFollowEachOther)
{
    options.configuration.train.onNan = OnNan::Skip;
    options.configuration.train.skipLimit = 2;
    spoilStep4(kTooLargeForward);
    const JobOutcome outcome = job.run(options);
    for (const auto &end : outcome.ends) {
        ASSERT_FALSE(end);
        EXPECT_THAT(end.error().text,
                    AllOf(HasSubstr("of step 6 is"), HasSubstr("2 steps before it"), HasSubstr("train.skip_limit"),
                          HasSubstr((job.checkpoints() / "step-000003").string())));
    }
    const auto manifest = files::CheckpointFolder::readManifest(job.checkpoints() / "step-000003").value();
    EXPECT_EQ(manifest.optimizerSteps, 3);
    EXPECT_EQ(manifest.data.nextSample, 3 * 8) << "the batches of the steps that were left out come again";
    for (const JobEvent &event : outcome.events) {
        if (event.kind == EventKind::Nan) {
            EXPECT_EQ(nlohmann::json::parse(event.detailJson)["skipped"], event.step != 6) << *event.step;
        }
    }
}

TEST_P(BrokenStep, endsTheRunWithACheckpointThatIsThereAlready)
{
    options.configuration.train.onNan = OnNan::Skip;
    options.configuration.train.skipLimit = 2;
    options.configuration.checkpoint.every = 5;
    spoilStep4(kTooLargeForward);
    const JobOutcome outcome = job.run(options);
    ASSERT_FALSE(outcome.ends[0]);
    EXPECT_THAT(outcome.ends[0].error().text, HasSubstr((job.checkpoints() / "step-000005").string()));
    EXPECT_FALSE(files::CheckpointFolder::readManifest(job.checkpoints() / "step-000003"));
}

TEST_P(BrokenStep, countsOnlyThoseInARow)
{
    options.configuration.train.onNan = OnNan::Skip;
    options.configuration.train.skipLimit = 1;
    options.stepDone = [](model::Decoder &decoder, int64_t step) {
        const bool isNextBroken = step == 2 || step == 4 || step == 6;
        fill(decoder, {{"ffn.gate.weight", isNextBroken ? 1e38 : 0.01}});
    };
    const JobOutcome outcome = job.run(options);
    for (const auto &end : outcome.ends)
        ASSERT_TRUE(end) << end.error().text;
    ASSERT_EQ(outcome.steps.size(), 7U);
    for (const train::StepReport &step : outcome.steps)
        EXPECT_EQ(step.result.state == StepState::Ok, step.number != 3 && step.number != 5 && step.number != 7);
}

TEST_P(BrokenStep, goesOnForEverWithoutALimit)
{
    options.configuration.train.onNan = OnNan::Skip;
    options.configuration.train.skipLimit = 0;
    options.configuration.train.steps = 16; // over the limit that there is otherwise
    spoilStep4(kTooLargeForward);
    const JobOutcome outcome = job.run(options);
    ASSERT_TRUE(outcome.ends[0]) << outcome.ends[0].error().text;
    EXPECT_EQ(outcome.steps.size(), 16U);
}

TEST_P(BrokenStep, thatComesOfTheWeightsNamesTheParameter)
{
    for (const OnNan onNan : {OnNan::Stop, OnNan::Skip}) {
        options.configuration.train.onNan = onNan;
        options.stepDone = nullptr;
        options.prepare = [](model::Decoder &decoder) {
            at::Tensor weight = decoder.engine().gatherParameter("block.1.attention.o.weight").value();
            weight[3][5] = std::numeric_limits<double>::quiet_NaN();
            ASSERT_TRUE(decoder.engine().loadParameter("block.1.attention.o.weight", weight));
        };
        const JobOutcome outcome = job.run(options);
        for (const auto &end : outcome.ends) {
            ASSERT_FALSE(end);
            EXPECT_THAT(end.error().text,
                        AllOf(HasSubstr("of step 1 is NaN"), HasSubstr("block.1.attention.o.weight had NaN before")));
        }
        EXPECT_EQ(nlohmann::json::parse(outcome.events.back().detailJson)["parameter"], "block.1.attention.o.weight");
        EXPECT_FALSE(files::CheckpointFolder(job.checkpoints()).newest());
    }
}

TEST_P(BrokenStep, inTheFirstStepLeavesNothingToKeep)
{
    options.prepare = [](model::Decoder &decoder) { fill(decoder, kTooLargeForward); };
    const JobOutcome outcome = job.run(options);
    ASSERT_FALSE(outcome.ends[0]);
    EXPECT_THAT(outcome.ends[0].error().text,
                AllOf(HasSubstr("of step 1 is"), HasSubstr("No step before it was good")));
    EXPECT_FALSE(files::CheckpointFolder(job.checkpoints()).newest());
}

TEST_P(BrokenStep, atTheFloorOfItsLossScaleStopsWhetherToldToOrToSkip)
{
    options.configuration.precision.compute = Precision::Fp16;
    options.configuration.train.sequenceLength = 8;     // the CPU is slow at fp16
    options.configuration.precision.scaler.initial = 4; // step 4 is skipped at it, step 5 at 2, and none at 1
    for (const OnNan onNan : {OnNan::Stop, OnNan::Skip}) {
        SCOPED_TRACE(toText(onNan));
        const TrainingJob fresh;
        options.configuration.train.onNan = onNan;
        spoilStep4(kTooLargeBackwardOfFp16);
        const JobOutcome outcome = fresh.run(options);
        for (const auto &end : outcome.ends) {
            ASSERT_FALSE(end);
            EXPECT_THAT(end.error().text, AllOf(HasSubstr("The gradient of step 6 is"),
                                                HasSubstr("at a loss scale of 1, which is as low"),
                                                HasSubstr("appeared first in backward, block.1, ffn.swiglu (rank 0)"),
                                                HasSubstr((fresh.checkpoints() / "step-000005").string()),
                                                HasSubstr("precision.compute=bf16")));
        }
        ASSERT_EQ(outcome.steps.size(), 6U);
        EXPECT_EQ(outcome.steps[3].result.state, StepState::Skipped);
        EXPECT_EQ(outcome.steps[4].result.state, StepState::Skipped);
        EXPECT_EQ(outcome.steps[5].result.lossScale, 1.0);
        const auto event = std::ranges::find_if(
            outcome.events, [](const JobEvent &each) { return each.kind == EventKind::Nan && each.step == 6; });
        ASSERT_NE(event, outcome.events.end());
        const auto detail = nlohmann::json::parse(event->detailJson);
        EXPECT_EQ(detail["unit"], "block.1");
        EXPECT_EQ(detail["operation"], "ffn.swiglu");
        EXPECT_EQ(detail["skipped"], false);
        const auto manifest = files::CheckpointFolder::readManifest(fresh.checkpoints() / "step-000005").value();
        EXPECT_EQ(manifest.optimizerSteps, 3) << "of good weights";
    }
}

TEST_P(BrokenStep, underOffEndsTheRunAsItIs)
{
    options.configuration.train.onNan = OnNan::Off;
    spoilStep4(kTooLargeForward);
    const JobOutcome outcome = job.run(options);
    for (const auto &end : outcome.ends) {
        ASSERT_FALSE(end);
        EXPECT_THAT(end.error().text, AllOf(HasSubstr("of step 4 is"), HasSubstr("train.on_nan=off")));
    }
    EXPECT_FALSE(files::CheckpointFolder(job.checkpoints()).newest());
}

INSTANTIATE_TEST_SUITE_P(Ranks, BrokenStep, ::testing::Values(1, 2),
                         [](const auto &info) { return fmt::format("on{}", info.param); });

} // namespace
