// SPDX-License-Identifier: Apache-2.0
// A step whose gradient or loss is not finite changes nothing: the training goes on as if it had not been, to the bit,
// on all ranks, wherever the states lie.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"
#include "tests/support/temporary_folder.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/torch.h>

namespace shardscope {

using config::RunConfiguration;
using test::kGlobalBatch;
using test::kPositions;

namespace {

constexpr double kRate = 1e-3;

/// One step; brokenScale takes the loss scale's place on the last rank, which nobody else knows of.
engine::StepScalars::Values step(model::Decoder &decoder, double clipNorm, int number,
                                 std::optional<double> brokenScale = std::nullopt)
{
    engine::Engine &engine = decoder.engine();
    const engine::Communicator &ranks = engine.communicator();
    const int64_t own = kGlobalBatch / ranks.worldSize();
    const at::Tensor rows =
        test::stepTokens(decoder.shape(), number).to(engine.device()).narrow(0, ranks.rank() * own, own);
    double scale = 1.0 / static_cast<double>(kGlobalBatch * kPositions);
    if (brokenScale && ranks.rank() == ranks.worldSize() - 1)
        scale = *brokenScale;
    const at::Tensor loss =
        decoder.forwardBackward(rows.slice(1, 0, kPositions).contiguous(), rows.slice(1, 1).contiguous(), scale, true);
    const engine::StepScalars scalars = engine.reduceScalars(loss);
    engine.optimizerStep(kRate, clipNorm, scalars);
    return scalars.host();
}

void expectSameStates(model::Decoder &decoder, model::Decoder &expected, std::string_view when)
{
    EXPECT_EQ(decoder.engine().optimizerSteps(), expected.engine().optimizerSteps()) << when;
    const auto states = decoder.engine().stateShards();
    const auto same = expected.engine().stateShards();
    ASSERT_EQ(states.size(), same.size());
    for (size_t i = 0; i < states.size(); ++i)
        EXPECT_TRUE(at::equal(states[i].data_S, same[i].data_S))
            << when << ": " << states[i].layout->name << " " << states[i].state;
}

void expectSkipped(const RunConfiguration &configuration, engine::Communicator &communicator,
                   observe::Observer &observer)
{
    const shapes::ModelShape shape = test::smallShape(true, true, true);
    model::Decoder broken(shape, configuration, communicator, observer);
    model::Decoder clean(shape, configuration, communicator, observer);
    const double clipNorm = configuration.optimizer.clipNorm;
    for (model::Decoder *decoder : {&broken, &clean})
        decoder->engine().initialize(3);
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    constexpr double kInf = std::numeric_limits<double>::infinity();
    EXPECT_FALSE(step(broken, clipNorm, 7, kNan).isFinite()); // before there are moments
    for (int number = 0; number < 4; ++number) {
        const auto values = step(broken, clipNorm, number);
        EXPECT_TRUE(values.isFinite());
        const auto expected = step(clean, clipNorm, number);
        EXPECT_EQ(values.lossSum, expected.lossSum) << "step " << number;
        EXPECT_EQ(values.gradientSquares, expected.gradientSquares) << "step " << number;
        const auto bad = step(broken, clipNorm, 7, number % 2 ? kNan : kInf);
        EXPECT_FALSE(bad.isFinite());
        EXPECT_FALSE(std::isfinite(bad.gradientNorm()));
        EXPECT_FALSE(bad.overflowed()) << "there is no scaler";
    }
    expectSameStates(broken, clean, "at the end");
}

} // namespace

TEST(SkippedStep, isAsIfItHadNotBeen)
{
    at::set_num_threads(1);
    observe::Observer observer;
    int number = 0;
    for (const int worldSize : {1, 2, 3, 4}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
            RunConfiguration configuration;
            configuration.parallel.strategy = strategy;
            configuration.precision.compute = number % 3 ? Precision::Fp32 : Precision::Bf16;
            configuration.optimizer.kind = number % 2 ? OptimizerKind::Sgd : OptimizerKind::AdamW;
            configuration.optimizer.momentum = 0.9;
            configuration.optimizer.clipNorm = number % 4 < 2 ? 0.25 : 0;
            SCOPED_TRACE(fmt::format("{} ranks, {}, {}", worldSize, toText(strategy), number));
            test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
                expectSkipped(configuration, communicator, observer);
            });
            ++number;
        }
    }
}

TEST(SkippedStep, ofOffloadedStates)
{
    at::set_num_threads(1);
    observe::Observer observer;
    const test::TemporaryFolder folder;
    for (const double clipNorm : {0.0, 0.25}) {
        for (const OffloadPlace parameters : {OffloadPlace::None, OffloadPlace::Nvme}) {
            RunConfiguration configuration;
            configuration.precision.compute = Precision::Bf16;
            configuration.optimizer.clipNorm = clipNorm;
            configuration.offload.path = folder.path();
            configuration.offload.optimizer = OffloadPlace::Nvme;
            configuration.offload.parameters = parameters;
            test::runRanks(2, observer, [&](engine::Communicator &communicator) {
                expectSkipped(configuration, communicator, observer);
            });
        }
    }
}

TEST(SkippedStepCuda, isAsIfItHadNotBeen)
{
    if (!torch::cuda::is_available())
        GTEST_SKIP() << "no CUDA device";
    at::globalContext().setDeterministicAlgorithms(true, false);
    observe::Observer observer;
    const test::TemporaryFolder folder;
    const auto communicator = engine::Communicator::create({.device = at::Device(at::kCUDA, 0)}, observer);
    ASSERT_TRUE(communicator.has_value()) << communicator.error().text;
    constexpr OffloadPlace kPlaces[] = {OffloadPlace::None, OffloadPlace::Cpu, OffloadPlace::Nvme};
    for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Sgd}) {
        for (const OffloadPlace parameters : kPlaces) {
            for (const OffloadPlace optimizer : kPlaces) {
                for (const double clipNorm : {0.0, 0.25}) {
                    RunConfiguration configuration;
                    configuration.precision.compute = Precision::Bf16;
                    configuration.optimizer.kind = kind;
                    configuration.optimizer.momentum = 0.9;
                    configuration.optimizer.clipNorm = clipNorm;
                    configuration.offload.path = folder.path();
                    configuration.offload.parameters = parameters;
                    configuration.offload.optimizer = optimizer;
                    SCOPED_TRACE(fmt::format("{}, parameters {}, states {}, clipped at {}", toText(kind),
                                             toText(parameters), toText(optimizer), clipNorm));
                    expectSkipped(configuration, **communicator, observer);
                }
            }
        }
    }
    at::globalContext().setDeterministicAlgorithms(false, false);
}

} // namespace shardscope
