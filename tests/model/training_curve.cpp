// SPDX-License-Identifier: Apache-2.0
#include "tests/model/training_curve.h"

#include "tests/model/ranks.h"

#include <cmath>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace shardscope::test {

at::Tensor stepTokens(const shapes::ModelShape &shape, int step, int64_t batch)
{
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(1000 + step));
    // Of a quarter of the vocabulary, so that there is something to learn.
    return at::randint(0, shape.vocabulary / 4, {batch, kPositions + 1}, generator, at::TensorOptions(at::kLong));
}

at::Tensor stepTargets(const TrainingCase &test, const at::Tensor &tokens)
{
    const at::Tensor targets = tokens.slice(1, 1).clone();
    for (int64_t row = 0; test.countsUnequally && row < targets.size(0); ++row) {
        const int64_t uncounted = row / 2 == 2 ? kPositions : row * 7 % kPositions;
        targets[row].slice(0, 0, uncounted).fill_(-1);
    }
    return targets;
}

std::vector<Strategy> strategiesAt(int worldSize)
{
    std::vector<Strategy> all = {Strategy::Full, Strategy::GradOp, Strategy::None};
    if (worldSize % 2 == 0)
        all.push_back(Strategy::Hybrid);
    return all;
}

engine::StepScalars::Values trainStep(model::Decoder &decoder, const TrainingCase &test, const at::Tensor &all,
                                      Curve *firstGradients)
{
    engine::Engine &engine = decoder.engine();
    const int64_t own = test.globalBatch / test.worldSize;
    const int64_t micro = own / test.accumulation;
    const at::Tensor targets = stepTargets(test, all);
    const double scale = 1.0 / targets.ge(0).sum().item<double>();
    at::Tensor loss = at::zeros({}, all.options().dtype(at::kDouble));
    // The gradients of a step whose update begins in backward can't be looked at; and whether a step of fp16 is made
    // is not known by then.
    const bool isFp16 = test.configuration.precision.compute == Precision::Fp16;
    if (test.configuration.optimizer.clipNorm == 0 && !firstGradients && !isFp16)
        engine.expectUpdate(1e-3);
    for (int i = 0; i < test.accumulation; ++i) {
        const int64_t first = engine.communicator().rank() * own + i * micro;
        const at::Tensor tokens = all.narrow(0, first, micro).slice(1, 0, kPositions).contiguous();
        loss += decoder.forwardBackward(tokens, targets.narrow(0, first, micro), scale, i + 1 == test.accumulation);
    }
    const engine::StepScalars scalars = engine.reduceScalars(loss, std::vector<double>{0.0, 2.0});
    if (firstGradients) {
        for (const engine::Bucket &bucket : engine.buckets()) {
            for (const engine::ParameterPlace &place : bucket.layout.parameters) {
                if (!bucket.frozen)
                    firstGradients->firstGradients[place.shape.name] = engine.gatherGradient(place.shape.name).value();
            }
        }
    }
    engine.optimizerStep(1e-3, test.configuration.optimizer.clipNorm, scalars);
    EXPECT_EQ(scalars.host().words[0], 0.0);
    EXPECT_EQ(scalars.host().words[1], 2.0 * test.worldSize);
    return scalars.host();
}

NamedTensors weightsOf(engine::Engine &engine)
{
    NamedTensors weights;
    for (const engine::Bucket &bucket : engine.buckets()) {
        for (const engine::ParameterPlace &place : bucket.layout.parameters)
            weights[place.shape.name] = engine.gatherParameter(place.shape.name).value();
    }
    return weights;
}

/// The loss of other tokens, between two steps.
static void validate(model::Decoder &decoder, const TrainingCase &test)
{
    const at::Tensor held = stepTokens(decoder.shape(), 777).to(test.device);
    const double loss =
        decoder.forwardLoss(held.slice(1, 0, kPositions).contiguous(), held.slice(1, 1).contiguous(), 1.0)
            .item<double>();
    const auto sums = decoder.engine().sumOverRanks(std::vector<double>{loss, 1.0});
    EXPECT_EQ(sums[1], test.worldSize);
}

static Curve trainRank(TrainingCase test, const shapes::ModelShape &shape, engine::Communicator &communicator,
                       observe::Observer &observer)
{
    test.configuration.optimizer.momentum = 0.9;
    model::Decoder decoder(shape, test.configuration, communicator, observer);
    decoder.engine().initialize(3);
    Curve curve;
    curve.firstWeights = weightsOf(decoder.engine());
    for (int step = 0; step < test.steps; ++step) {
        if (test.beforeStep)
            test.beforeStep(decoder, test.configuration, step);
        const at::Tensor tokens = stepTokens(shape, step, test.globalBatch).to(test.device);
        const auto values = trainStep(decoder, test, tokens, step == 0 ? &curve : nullptr);
        curve.losses.push_back(values.lossSum);
        curve.norms.push_back(values.gradientNorm());
        if (test.validateEvery > 0 && step % test.validateEvery == 0)
            validate(decoder, test);
    }
    const at::Tensor first = stepTokens(shape, 0).to(test.device);
    const at::Tensor targets = first.slice(1, 1).contiguous();
    curve.firstBatchAfter = decoder
                                .forwardLoss(first.slice(1, 0, kPositions).contiguous(), targets,
                                             1.0 / static_cast<double>(targets.numel()))
                                .item<double>();
    curve.lastWeights = weightsOf(decoder.engine());
    return curve;
}

Curve train(const TrainingCase &test)
{
    Curve curve;
    observe::Observer observer;
    const shapes::ModelShape shape = test.shape.value_or(smallShape(true, test.tied, true));
    const auto runRank = [&](engine::Communicator &communicator) {
        Curve own = trainRank(test, shape, communicator, observer);
        if (communicator.rank() == 0)
            curve = std::move(own);
    };
    runRanks(test.worldSize, observer, runRank, test.device);
    return curve;
}

static double relative(const at::Tensor &value, const at::Tensor &reference)
{
    return ((value - reference).norm() / reference.norm()).item<double>();
}

void expectSameCurve(const Curve &curve, const Curve &reference, Precision precision)
{
    const bool isFp32 = precision == Precision::Fp32;
    const double lossTolerance = isFp32 ? 1e-5 : 5e-4;
    const double normTolerance = isFp32 ? 1e-5 : 1e-2;
    const double gradientTolerance = isFp32 ? 1e-5 : 3e-2;
    ASSERT_EQ(curve.losses.size(), reference.losses.size());
    for (size_t step = 0; step < reference.losses.size(); ++step) {
        EXPECT_NEAR(curve.losses[step] / reference.losses[step], 1.0, lossTolerance) << "step " << step;
        EXPECT_NEAR(curve.norms[step] / reference.norms[step], 1.0, normTolerance) << "step " << step;
    }
    ASSERT_EQ(curve.firstGradients.size(), reference.firstGradients.size());
    for (const auto &[name, gradient] : curve.firstGradients)
        EXPECT_LT(relative(gradient, reference.firstGradients.at(name)), gradientTolerance) << name;
}

void expectNormOfTheGradients(const Curve &curve)
{
    double squares = 0;
    for (const auto &[name, gradient] : curve.firstGradients)
        squares += gradient.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(curve.norms.front() / std::sqrt(squares), 1.0, 1e-6);
}

void expectEqualToTheBit(const Curve &a, const Curve &b)
{
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.norms, b.norms);
    for (const auto &[name, weight] : a.lastWeights)
        EXPECT_TRUE(at::equal(weight, b.lastWeights.at(name))) << name;
}

} // namespace shardscope::test
