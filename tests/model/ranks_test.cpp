// SPDX-License-Identifier: Apache-2.0
// N ranks train as one rank does: losses, gradient norms and the first step's gradients, for each strategy.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace shardscope {

using test::Curve;
using test::expectEqualToTheBit;
using test::expectSameCurve;
using test::stepTokens;
using test::train;
using test::TrainingCase;
using test::trainStep;

/// AdamW does not see a gradient that is wrong by a factor, SGD does.
class Ranks : public testing::TestWithParam<std::tuple<OptimizerKind, Precision, double>>
{
};

TEST_P(Ranks, trainAsOneRankDoes)
{
    at::set_num_threads(1);
    TrainingCase test;
    auto &configuration = test.configuration;
    std::tie(configuration.optimizer.kind, configuration.precision.compute, configuration.optimizer.clipNorm) =
        GetParam();
    const Curve reference = train(test);
    EXPECT_LT(reference.firstBatchAfter, reference.losses.front()) << "nothing was learned";
    const bool clipsAsMeant =
        configuration.optimizer.clipNorm == 0 || reference.norms.front() > configuration.optimizer.clipNorm;
    EXPECT_TRUE(clipsAsMeant) << "clipping was to be active";
    for (const auto &[worldSize, accumulation] : {std::pair{2, 1}, {2, 3}, {4, 1}, {4, 3}}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
            SCOPED_TRACE(fmt::format("{} ranks, {}, {} micro-batches", worldSize, toText(strategy), accumulation));
            test.worldSize = worldSize;
            test.configuration.parallel.strategy = strategy;
            test.accumulation = accumulation;
            expectSameCurve(train(test), reference, configuration.precision.compute);
        }
    }
}

static std::string nameOf(const std::tuple<OptimizerKind, Precision, double> &parameters)
{
    const auto &[kind, precision, clipNorm] = parameters;
    return fmt::format("{}_{}{}", toText(kind), toText(precision), clipNorm > 0 ? "_clipped" : "");
}

INSTANTIATE_TEST_SUITE_P(All, Ranks,
                         testing::Combine(testing::Values(OptimizerKind::AdamW, OptimizerKind::Sgd),
                                          testing::Values(Precision::Fp32, Precision::Bf16),
                                          testing::Values(0.0, 0.25)),
                         [](const auto &info) { return nameOf(info.param); });

TEST(Ranks, threeRanksAndTiedWeights)
{
    at::set_num_threads(1);
    TrainingCase test;
    test.tied = true;
    test.configuration.optimizer.clipNorm = 0.25;
    const Curve reference = train(test);
    test.worldSize = 3;
    test.accumulation = 2;
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        SCOPED_TRACE(toText(strategy));
        test.configuration.parallel.strategy = strategy;
        expectSameCurve(train(test), reference, Precision::Fp32);
    }
}

TEST(Ranks, equalRunsAreEqualToTheBit)
{
    at::set_num_threads(1);
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
        TrainingCase test;
        test.worldSize = 3;
        test.configuration.precision.compute = precision;
        test.configuration.optimizer.clipNorm = 0.25;
        const Curve first = train(test);
        expectEqualToTheBit(train(test), first);
        // A validation between two steps changes nothing.
        test.validateEvery = 4;
        expectEqualToTheBit(train(test), first);
    }
}

TEST(Ranks, strategiesOfOneWorldAgreeToTheBitInFp32)
{
    at::set_num_threads(1);
    TrainingCase test;
    test.worldSize = 2;
    const Curve full = train(test);
    test.configuration.parallel.strategy = Strategy::GradOp;
    expectEqualToTheBit(train(test), full);
    test.configuration.parallel.strategy = Strategy::None;
    expectEqualToTheBit(train(test), full);
}

TEST(Ranks, stateOfOneRunContinuesInAnother)
{
    at::set_num_threads(1);
    observe::Observer observer;
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    TrainingCase test;
    test.worldSize = 2;
    test.configuration.precision.compute = Precision::Bf16;
    test::runRanks(2, observer, [&](engine::Communicator &communicator) {
        config::RunConfiguration configuration;
        configuration.precision.compute = Precision::Bf16;
        model::Decoder whole(shape, configuration, communicator, observer);
        whole.engine().initialize(3);
        for (int step = 0; step < 3; ++step)
            trainStep(whole, test, stepTokens(shape, step), nullptr);
        configuration.parallel.strategy = Strategy::None;
        model::Decoder continued(shape, configuration, communicator, observer);
        auto from = whole.engine().stateShards();
        auto to = continued.engine().stateShards();
        ASSERT_EQ(from.size(), to.size());
        for (size_t i = 0; i < from.size(); ++i) {
            ASSERT_EQ(from[i].state, to[i].state);
            ASSERT_EQ(from[i].owned, to[i].owned);
            communicator.allGather(to[i].data_S, from[i].data_S, {}).wait();
        }
        continued.engine().stateRestored(whole.engine().optimizerSteps());
        for (int step = 3; step < 6; ++step) {
            const auto a = trainStep(whole, test, stepTokens(shape, step), nullptr);
            const auto b = trainStep(continued, test, stepTokens(shape, step), nullptr);
            EXPECT_EQ(a.lossSum, b.lossSum);
            EXPECT_EQ(a.gradientSquares, b.gradientSquares);
        }
    });
}

} // namespace shardscope
