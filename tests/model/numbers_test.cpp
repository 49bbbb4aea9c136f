// SPDX-License-Identifier: Apache-2.0
// fp16 with its scaler, moments in bf16, and gradients that travel in bf16: N ranks train as one rank does.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"
#include "tests/support/temporary_folder.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace shardscope {

using config::RunConfiguration;
using test::Curve;
using test::expectEqualToTheBit;
using test::expectSameCurve;
using test::kGlobalBatch;
using test::kPositions;
using test::train;
using test::TrainingCase;

namespace {

TrainingCase caseOf(Precision compute)
{
    at::set_num_threads(1);
    TrainingCase test;
    test.configuration.precision.compute = compute;
    test.configuration.optimizer.clipNorm = 0.25;
    return test;
}

/// Every strategy and every world size against one rank, with one micro-batch or two.
void expectAsOneRank(TrainingCase test, const Curve &reference)
{
    int number = 0;
    for (const auto &[worldSize, strategy] : {std::pair{2, Strategy::Full},
                                              {2, Strategy::None},
                                              {3, Strategy::GradOp},
                                              {3, Strategy::None},
                                              {4, Strategy::Full},
                                              {4, Strategy::Hybrid}}) {
        test.worldSize = worldSize;
        test.accumulation = worldSize == 4 ? 3 : 1 + number++ % 2;
        test.configuration.parallel.strategy = strategy;
        SCOPED_TRACE(fmt::format("{} ranks, {}, {} micro-batches", worldSize, toText(strategy), test.accumulation));
        expectSameCurve(train(test), reference, Precision::Bf16);
    }
}

} // namespace

/// AdamW is the grid's.
TEST(Fp16, ranksTrainBySgdAsOneRankDoes)
{
    TrainingCase test = caseOf(Precision::Fp16);
    test.configuration.optimizer.kind = OptimizerKind::Sgd;
    const Curve reference = train(test);
    EXPECT_LT(reference.firstBatchAfter, reference.losses.front()) << "nothing was learned";
    EXPECT_GT(reference.norms.front(), 0.25) << "clipping was to be active";
    expectAsOneRank(test, reference);
}

TEST(Fp16, trainsAsFp32DoesWithTheNormsOfUnscaledGradients)
{
    for (const double clipNorm : {0.0, 0.25}) {
        TrainingCase test = caseOf(Precision::Fp32);
        test.configuration.optimizer.clipNorm = clipNorm;
        const Curve fp32 = train(test);
        test.configuration.precision.compute = Precision::Fp16;
        const Curve fp16 = train(test);
        for (size_t step = 0; step < test::kSteps; ++step) {
            EXPECT_NEAR(fp16.losses[step] / fp32.losses[step], 1.0, 1e-3) << "step " << step;
            EXPECT_NEAR(fp16.norms[step] / fp32.norms[step], 1.0, 1e-2) << "step " << step;
        }
        for (const auto &[name, gradient] : fp16.firstGradients) {
            const at::Tensor &expected = fp32.firstGradients.at(name);
            EXPECT_LT(((gradient - expected).norm() / expected.norm()).item<double>(), 1e-2) << name;
        }
    }
}

TEST(Fp16, offloadedStatesChangeNoBit)
{
    const test::TemporaryFolder folder;
    TrainingCase test = caseOf(Precision::Fp16);
    test.worldSize = 2;
    test.steps = test::kStepsToTheBit;
    for (const double clipNorm : {0.0, 0.25}) {
        test.configuration.optimizer.clipNorm = clipNorm;
        test.configuration.offload = {};
        const Curve plain = train(test);
        test.configuration.offload.parameters = test.configuration.offload.optimizer = OffloadPlace::Nvme;
        test.configuration.offload.path = folder.path();
        expectEqualToTheBit(train(test), plain);
    }
}

namespace {

/// A decoder of fp16 on each of `worldSize` ranks, that takes steps.
struct Scaled
{
    Scaled(const RunConfiguration &configuration, engine::Communicator &communicator, observe::Observer &observer)
        : decoder(test::smallShape(true, true, true), configuration, communicator, observer)
    {
        decoder.engine().initialize(3);
    }
    /// enlarged: the last rank's loss is so many times its own.
    engine::StepScalars::Values step(int number, double enlarged = 1)
    {
        engine::Engine &engine = decoder.engine();
        const engine::Communicator &ranks = engine.communicator();
        const int64_t own = kGlobalBatch / ranks.worldSize();
        const at::Tensor rows = test::stepTokens(decoder.shape(), number).narrow(0, ranks.rank() * own, own);
        const bool isLast = ranks.rank() == ranks.worldSize() - 1;
        const double scale = (isLast ? enlarged : 1.0) / static_cast<double>(kGlobalBatch * kPositions);
        const at::Tensor loss = decoder.forwardBackward(rows.slice(1, 0, kPositions).contiguous(),
                                                        rows.slice(1, 1).contiguous(), scale, true);
        const engine::StepScalars scalars = engine.reduceScalars(loss);
        engine.optimizerStep(1e-3, 0.25, scalars);
        return scalars.host();
    }
    engine::ScalerState state() { return decoder.engine().scalerState().value(); }
    model::Decoder decoder;
};

} // namespace

namespace {

/// What a rank saw of three steps, and what it held after them.
struct ThreeSteps
{
    std::vector<double> sums; ///< the loss and the squares of the gradient of each
    std::vector<at::Tensor> states;
};

/// Of each rank, at a loss scale of 32768: from the start, or where the last rank's gradients overflowed in a step
/// before them.
std::vector<ThreeSteps> threeStepsOfRanks(int worldSize, Strategy strategy, bool afterOverflow)
{
    observe::Observer observer;
    std::vector<ThreeSteps> all(static_cast<size_t>(worldSize));
    test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
        RunConfiguration configuration;
        configuration.parallel.strategy = strategy;
        configuration.precision.compute = Precision::Fp16;
        configuration.precision.scaler.initial = afterOverflow ? 65536 : 32768;
        Scaled scaled(configuration, communicator, observer);
        if (afterOverflow) {
            const auto values = scaled.step(7, 1e3);
            EXPECT_TRUE(values.overflowed() && !values.isFinite() && !values.isAtFloor());
            EXPECT_TRUE(std::isfinite(values.lossSum));
            EXPECT_EQ(values.scale, 65536);
            EXPECT_EQ(scaled.state(), (engine::ScalerState{32768, 0, 1}));
        }
        ThreeSteps &own = all[static_cast<size_t>(communicator.rank())];
        for (int step = 0; step < 3; ++step) {
            const auto values = scaled.step(step);
            EXPECT_EQ(values.scale, 32768);
            own.sums.insert(own.sums.end(), {values.lossSum, values.gradientSquares});
        }
        EXPECT_EQ(scaled.decoder.engine().optimizerSteps(), 3);
        EXPECT_EQ(scaled.state(), (engine::ScalerState{32768, 3, afterOverflow ? 1 : 0}));
        for (const engine::StateShard &shard : scaled.decoder.engine().stateShards())
            own.states.push_back(shard.data_S.clone());
    });
    return all;
}

} // namespace

TEST(Fp16, overflowOnOneRankIsSkippedByAll)
{
    at::set_num_threads(1);
    for (const int worldSize : {1, 2, 3, 4}) {
        for (const Strategy strategy : test::strategiesAt(worldSize)) {
            SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
            const auto clean = threeStepsOfRanks(worldSize, strategy, false);
            const auto overflowed = threeStepsOfRanks(worldSize, strategy, true);
            for (size_t rank = 0; rank < clean.size(); ++rank) {
                EXPECT_EQ(overflowed[rank].sums, clean[rank].sums);
                ASSERT_EQ(overflowed[rank].states.size(), clean[rank].states.size());
                for (size_t i = 0; i < clean[rank].states.size(); ++i)
                    EXPECT_TRUE(at::equal(overflowed[rank].states[i], clean[rank].states[i]))
                        << "state " << i << " of rank " << rank;
            }
        }
    }
}

TEST(Fp16, scaleGrowsFallsAndStaysAtItsFloor)
{
    at::set_num_threads(1);
    observe::Observer observer;
    test::runRanks(1, observer, [&](engine::Communicator &communicator) {
        RunConfiguration configuration;
        configuration.precision.compute = Precision::Fp16;
        configuration.precision.scaler = {3, 3, 2, 0.25};
        Scaled scaled(configuration, communicator, observer);
        std::vector<double> scales;
        // Two good steps raise the scale; 1e9 times the loss overflows at any scale.
        for (const double enlarged : {1.0, 1.0, 1.0, 1e9, 1.0, 1e9, 1e9})
            scales.push_back(scaled.step(0, enlarged).scale);
        EXPECT_EQ(scales, (std::vector<double>{3, 3, 9, 9, 2.25, 2.25, 1}));
        const auto atFloor = scaled.step(0, 1e9);
        EXPECT_EQ(atFloor.scale, 1);
        EXPECT_TRUE(atFloor.isAtFloor());
        EXPECT_FALSE(atFloor.overflowed()) << "no lower scale would help";
        EXPECT_EQ(scaled.state(), (engine::ScalerState{1, 0, 4}));
        scaled.decoder.engine().restoreScaler({512, 1, 9});
        EXPECT_EQ(scaled.step(0).scale, 512);
        EXPECT_EQ(scaled.state(), (engine::ScalerState{1536, 0, 9}));
    });
}

TEST(Bf16Moments, ranksTrainAsOneRankDoesAndNearFp32)
{
    for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Sgd}) {
        TrainingCase test = caseOf(Precision::Fp32);
        test.configuration.optimizer.kind = kind;
        const Curve fp32 = train(test);
        test.configuration.precision.moments = Precision::Bf16;
        const Curve reference = train(test);
        EXPECT_NE(reference.losses.back(), fp32.losses.back()) << "moments were to be rounded";
        for (size_t step = 0; step < test::kSteps; ++step)
            EXPECT_NEAR(reference.losses[step] / fp32.losses[step], 1.0, 1e-3) << "step " << step;
        expectAsOneRank(test, reference);
    }
}

TEST(Bf16Moments, lieAnywhereAndUnderAnyStrategyWithTheSameBits)
{
    const test::TemporaryFolder folder;
    for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Sgd}) {
        TrainingCase test = caseOf(Precision::Fp32);
        test.worldSize = 2;
        test.steps = test::kStepsToTheBit;
        test.configuration.precision.moments = Precision::Bf16;
        test.configuration.optimizer.kind = kind;
        const Curve full = train(test);
        test.configuration.parallel.strategy = Strategy::None;
        expectEqualToTheBit(train(test), full);
        test.configuration.parallel.strategy = Strategy::Full;
        test.configuration.offload.optimizer = OffloadPlace::Nvme;
        test.configuration.offload.path = folder.path();
        expectEqualToTheBit(train(test), full);
        test.configuration.offload.parameters = OffloadPlace::Nvme;
        expectEqualToTheBit(train(test), full);
        // Moved to and fro between steps.
        test.beforeStep = [](model::Decoder &decoder, RunConfiguration &configuration, int step) {
            configuration.offload.optimizer = step % 2 ? OffloadPlace::None : OffloadPlace::Nvme;
            configuration.parallel.strategy = step % 3 ? Strategy::Full : Strategy::None;
            decoder.engine().reconfigure(shapes::replanned(decoder.engine().plan(), configuration).value());
        };
        expectEqualToTheBit(train(test), full);
    }
}

TEST(Bf16Moments, takeHalfTheMemory)
{
    at::set_num_threads(1);
    observe::Observer observer;
    test::runRanks(1, observer, [&](engine::Communicator &communicator) {
        RunConfiguration configuration;
        configuration.precision.moments = Precision::Bf16;
        Scaled any(configuration, communicator, observer);
        for (const engine::StateShard &shard : any.decoder.engine().stateShards()) {
            const int64_t bytes = shard.state == "master" ? 4 : 2;
            EXPECT_EQ(static_cast<int64_t>(shard.data_S.nbytes()), bytes * shard.held.size()) << shard.state;
        }
    });
}

/// Counts the bytes of reductions by dtype.
class Reductions : public observe::Observer
{
public:
    int64_t beginCollective(const observe::CollectiveInfo &info) override
    {
        const bool isOfGradients = info.phase == Phase::Backward && (info.operation == Operation::ReduceScatter ||
                                                                     info.operation == Operation::AllReduce);
        const std::lock_guard lock(m_mutex);
        if (isOfGradients)
            m_bytes[std::string(info.dtype)] += info.inputBytes;
        return 0;
    }
    int64_t bytes(const std::string &dtype) { return m_bytes[dtype]; }

private:
    std::mutex m_mutex;
    std::map<std::string, int64_t> m_bytes;
};

TEST(Bf16Reduction, ranksTrainAsOneRankDoes)
{
    for (const auto &[compute, every] :
         {std::pair{Precision::Fp32, ReduceEvery::MicroBatch}, {Precision::Fp16, ReduceEvery::Step}}) {
        TrainingCase test = caseOf(compute);
        const Curve reference = train(test);
        test.configuration.precision.reduce = Precision::Bf16;
        test.configuration.parallel.reduceEvery = every;
        expectEqualToTheBit(train(test), reference); // one rank sends nothing
        expectAsOneRank(test, reference);
    }
}

TEST(Bf16Reduction, sendsHalfTheBytesAndRepeatsToTheBit)
{
    at::set_num_threads(1);
    Reductions wide;
    Reductions narrow;
    for (Reductions *observer : {&wide, &narrow}) {
        test::runRanks(2, *observer, [&](engine::Communicator &communicator) {
            RunConfiguration configuration;
            configuration.precision.reduce = observer == &narrow ? Precision::Bf16 : Precision::Fp32;
            Scaled(configuration, communicator, *observer).step(0);
        });
    }
    EXPECT_GT(wide.bytes("fp32"), 0);
    EXPECT_EQ(wide.bytes("bf16"), 0);
    EXPECT_EQ(narrow.bytes("fp32"), 0);
    EXPECT_EQ(narrow.bytes("bf16") * 2, wide.bytes("fp32"));
    TrainingCase test = caseOf(Precision::Fp32);
    test.worldSize = 3;
    test.configuration.precision.reduce = Precision::Bf16;
    const Curve first = train(test);
    expectEqualToTheBit(train(test), first);
    // The ranks' parts are rounded before, and added in the same order, under any strategy; `none` rounds the sum too.
    test.configuration.parallel.strategy = Strategy::GradOp;
    expectEqualToTheBit(train(test), first);
}

} // namespace shardscope
