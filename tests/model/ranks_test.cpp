// SPDX-License-Identifier: Apache-2.0
// N ranks train as one rank does: losses, gradient norms and the first step's gradients, for each strategy.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <mutex>
#include <torch/torch.h>

namespace shardscope {

struct TrainingCase
{
    int worldSize = 1;
    Strategy strategy = Strategy::Full;
    int accumulation = 1;
    Precision precision = Precision::Fp32;
    OptimizerKind optimizer = OptimizerKind::AdamW;
    double clipNorm = 0;
    bool tied = false;
    int validateEvery = 0;
};

struct Curve
{
    std::vector<double> losses;
    std::vector<double> norms;
    test::NamedTensors firstGradients;
    test::NamedTensors lastWeights;
    double firstBatchAfter = 0; ///< loss of step 0's tokens after the last step
};

static constexpr int kSteps = 20;
static constexpr int64_t kGlobalBatch = 12;
static constexpr int64_t kPositions = 16;

static at::Tensor stepTokens(const shapes::ModelShape &shape, int step)
{
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(1000 + step));
    // Of a quarter of the vocabulary, so that there is something to learn.
    return at::randint(0, shape.vocabulary / 4, {kGlobalBatch, kPositions + 1}, generator,
                       at::TensorOptions(at::kLong));
}

/// One rank's part of one step; returns the step's global loss and norm.
static engine::StepScalars::Values trainStep(model::Decoder &decoder, const TrainingCase &test, const at::Tensor &all,
                                             Curve *firstGradients)
{
    engine::Engine &engine = decoder.engine();
    const int64_t own = kGlobalBatch / test.worldSize;
    const int64_t micro = own / test.accumulation;
    const double scale = 1.0 / static_cast<double>(kGlobalBatch * kPositions);
    at::Tensor loss = at::zeros({}, at::kDouble);
    for (int i = 0; i < test.accumulation; ++i) {
        const at::Tensor rows = all.narrow(0, engine.communicator().rank() * own + i * micro, micro);
        loss += decoder.forwardBackward(rows.slice(1, 0, kPositions).contiguous(), rows.slice(1, 1).contiguous(), scale,
                                        i + 1 == test.accumulation);
    }
    const engine::StepScalars scalars = engine.reduceScalars(loss, std::vector<double>{0.0, 2.0});
    if (firstGradients) {
        for (observe::UnitIndex unit = 0; unit < engine.unitCount(); ++unit) {
            for (const engine::ParameterPlace &place : engine.layout(unit).parameters)
                firstGradients->firstGradients[place.shape.name] = engine.gatherGradient(place.shape.name).value();
        }
    }
    engine.optimizerStep(1e-3, test.clipNorm, scalars);
    EXPECT_EQ(scalars.host().words[0], 0.0);
    EXPECT_EQ(scalars.host().words[1], 2.0 * test.worldSize);
    return scalars.host();
}

static Curve train(const TrainingCase &test)
{
    Curve curve;
    observe::Observer observer;
    const shapes::ModelShape shape = test::smallShape(true, test.tied, true);
    test::runRanks(test.worldSize, observer, [&](engine::Communicator &communicator) {
        engine::EngineOptions options;
        options.strategy = test.strategy;
        options.compute = test.precision;
        options.optimizer = test.optimizer;
        options.momentum = 0.9;
        model::Decoder decoder(shape, options, communicator, observer);
        decoder.engine().initialize(3);
        Curve own;
        for (int step = 0; step < kSteps; ++step) {
            const auto values = trainStep(decoder, test, stepTokens(shape, step), step == 0 ? &own : nullptr);
            own.losses.push_back(values.lossSum);
            own.norms.push_back(values.gradientNorm());
            if (test.validateEvery > 0 && step % test.validateEvery == 0) {
                const at::Tensor held = stepTokens(shape, 777);
                const double loss =
                    decoder.forwardLoss(held.slice(1, 0, kPositions).contiguous(), held.slice(1, 1).contiguous(), 1.0)
                        .item<double>();
                const auto sums = decoder.engine().sumOverRanks(std::vector<double>{loss, 1.0});
                EXPECT_EQ(sums[1], test.worldSize);
            }
        }
        const at::Tensor first = stepTokens(shape, 0);
        const at::Tensor targets = first.slice(1, 1).contiguous();
        own.firstBatchAfter = decoder
                                  .forwardLoss(first.slice(1, 0, kPositions).contiguous(), targets,
                                               1.0 / static_cast<double>(targets.numel()))
                                  .item<double>();
        for (const auto &[name, gradient] : own.firstGradients)
            own.lastWeights[name] = decoder.engine().gatherParameter(name).value();
        if (communicator.rank() == 0)
            curve = std::move(own);
    });
    return curve;
}

static double relative(const at::Tensor &value, const at::Tensor &reference)
{
    return ((value - reference).norm() / reference.norm()).item<double>();
}

static void expectSameCurve(const Curve &curve, const Curve &reference, Precision precision)
{
    const bool isFp32 = precision == Precision::Fp32;
    const double lossTolerance = isFp32 ? 1e-5 : 5e-4;
    const double normTolerance = isFp32 ? 1e-5 : 1e-2;
    const double gradientTolerance = isFp32 ? 1e-5 : 3e-2;
    for (size_t step = 0; step < kSteps; ++step) {
        EXPECT_NEAR(curve.losses[step] / reference.losses[step], 1.0, lossTolerance) << "step " << step;
        EXPECT_NEAR(curve.norms[step] / reference.norms[step], 1.0, normTolerance) << "step " << step;
    }
    ASSERT_EQ(curve.firstGradients.size(), reference.firstGradients.size());
    for (const auto &[name, gradient] : curve.firstGradients)
        EXPECT_LT(relative(gradient, reference.firstGradients.at(name)), gradientTolerance) << name;
}

class Ranks : public testing::TestWithParam<std::tuple<Precision, OptimizerKind, double>>
{
};

TEST_P(Ranks, trainAsOneRankDoes)
{
    at::set_num_threads(1);
    TrainingCase test;
    std::tie(test.precision, test.optimizer, test.clipNorm) = GetParam();
    const Curve reference = train(test);
    EXPECT_LT(reference.firstBatchAfter, reference.losses.front()) << "nothing was learned";
    const bool clipsAsMeant = test.clipNorm == 0 || reference.norms.front() > test.clipNorm;
    EXPECT_TRUE(clipsAsMeant) << "clipping was to be active";
    for (const int worldSize : {2, 4}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
            for (const int accumulation : {1, 3}) {
                SCOPED_TRACE(fmt::format("{} ranks, {}, {} micro-batches", worldSize, toText(strategy), accumulation));
                test.worldSize = worldSize;
                test.strategy = strategy;
                test.accumulation = accumulation;
                expectSameCurve(train(test), reference, test.precision);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Ranks,
                         testing::Combine(testing::Values(Precision::Fp32, Precision::Bf16),
                                          testing::Values(OptimizerKind::AdamW, OptimizerKind::Sgd),
                                          testing::Values(0.0, 0.25)),
                         [](const auto &info) {
                             return std::string(toText(std::get<0>(info.param))) +
                                    std::string(toText(std::get<1>(info.param))) +
                                    (std::get<2>(info.param) > 0 ? "Clipped" : "");
                         });

TEST(Ranks, threeRanksAndTiedWeights)
{
    at::set_num_threads(1);
    TrainingCase test;
    test.tied = true;
    test.clipNorm = 0.25;
    const Curve reference = train(test);
    test.worldSize = 3;
    test.accumulation = 2;
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        SCOPED_TRACE(toText(strategy));
        test.strategy = strategy;
        expectSameCurve(train(test), reference, Precision::Fp32);
    }
}

static void expectEqualToTheBit(const Curve &a, const Curve &b)
{
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.norms, b.norms);
    for (const auto &[name, weight] : a.lastWeights)
        EXPECT_TRUE(at::equal(weight, b.lastWeights.at(name))) << name;
}

TEST(Ranks, equalRunsAreEqualToTheBit)
{
    at::set_num_threads(1);
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
        TrainingCase test;
        test.worldSize = 3;
        test.precision = precision;
        test.clipNorm = 0.25;
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
    test.strategy = Strategy::GradOp;
    expectEqualToTheBit(train(test), full);
    test.strategy = Strategy::None;
    expectEqualToTheBit(train(test), full);
}

TEST(Ranks, stateOfOneRunContinuesInAnother)
{
    at::set_num_threads(1);
    observe::Observer observer;
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    TrainingCase test;
    test.worldSize = 2;
    test.precision = Precision::Bf16;
    test::runRanks(2, observer, [&](engine::Communicator &communicator) {
        engine::EngineOptions options;
        options.compute = Precision::Bf16;
        model::Decoder whole(shape, options, communicator, observer);
        whole.engine().initialize(3);
        for (int step = 0; step < 3; ++step)
            trainStep(whole, test, stepTokens(shape, step), nullptr);
        options.strategy = Strategy::None;
        model::Decoder continued(shape, options, communicator, observer);
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
