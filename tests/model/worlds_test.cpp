// SPDX-License-Identifier: Apache-2.0
// Where other engines broke: numbers of ranks that divide nothing, parameters smaller than the world, shards with
// nothing in them; what counts in the loss and in the norm, what decays, and what a validation leaves as it was.
#include "core/model/decoder.h"
#include "tests/model/grid_axes.h"
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
using test::NamedTensors;
using test::TrainingCase;

namespace {

/// Sizes that neither 5 nor 7 divides, and norms of 4 elements, fewer than the ranks.
shapes::ModelShape awkwardShape()
{
    shapes::ModelShape shape = test::shapeWithEverything(true);
    shape.headSize = 4;
    return shape;
}

TrainingCase awkwardCase()
{
    TrainingCase test;
    test.shape = awkwardShape();
    test.steps = 8;
    test.globalBatch = 35; // 5 × 7
    test.configuration.optimizer.clipNorm = 0.25;
    return test;
}

/// Rank 0's weights after `steps` steps, from these or from those of a seed.
NamedTensors weightsAfter(int steps, int worldSize, const shapes::ModelShape &shape,
                          const RunConfiguration &configuration, const NamedTensors &start = {})
{
    observe::Observer observer;
    NamedTensors weights;
    test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
        model::Decoder decoder(shape, configuration, communicator, observer);
        decoder.engine().initialize(3);
        for (const auto &[name, weight] : start)
            EXPECT_TRUE(decoder.engine().loadParameter(name, weight).has_value()) << name;
        TrainingCase test;
        test.worldSize = worldSize;
        test.globalBatch = worldSize;
        test.configuration = configuration;
        for (int step = 0; step < steps; ++step)
            trainStep(decoder, test, test::stepTokens(shape, step, worldSize), nullptr);
        NamedTensors own = test::weightsOf(decoder.engine());
        if (communicator.rank() == 0)
            weights = std::move(own);
    });
    return weights;
}

void expectEqual(const NamedTensors &some, const NamedTensors &others)
{
    ASSERT_EQ(some.size(), others.size());
    for (const auto &[name, tensor] : some)
        EXPECT_TRUE(at::equal(tensor, others.at(name))) << name;
}

} // namespace

TEST(Worlds, fiveAndSevenRanksTrainAsOneAndEveryTensorMoves)
{
    at::set_num_threads(1);
    TrainingCase test = awkwardCase();
    const Curve reference = train(test);
    test::expectNormOfTheGradients(reference);
    // Buckets of norms have fewer elements than one aligned slice: all ranks but the first hold padding alone.
    test.configuration.units = test::gridRules();
    for (const int worldSize : {5, 7}) {
        test.worldSize = worldSize;
        for (const Strategy strategy : test::strategiesAt(worldSize)) {
            SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
            test.configuration.parallel.strategy = strategy;
            test.accumulation = strategy == Strategy::Full ? 35 / worldSize : 1;
            const Curve curve = train(test);
            expectSameCurve(curve, reference, Precision::Fp32);
            expectEqual(curve.firstWeights, reference.firstWeights);
            for (const auto &[name, weight] : curve.lastWeights)
                EXPECT_FALSE(at::equal(weight, curve.firstWeights.at(name))) << name << " never moved";
        }
    }
}

TEST(Worlds, oneSeedGivesTheSameWeightsEverywhere)
{
    at::set_num_threads(1);
    for (const bool tied : {false, true}) {
        shapes::ModelShape shape = awkwardShape();
        shape.tiedEmbeddings = tied;
        RunConfiguration configuration;
        const NamedTensors expected = weightsAfter(0, 1, shape, configuration);
        configuration.units = {{.kind = ParameterKind::Norm, .settings = {{"parallel.strategy", "none"}}},
                               {.match = "block.1.*", .wrap = true},
                               {.match = "block.0.attention.*", .frozen = true}};
        for (const int worldSize : {1, 2, 3, 4, 5, 7}) {
            for (const Strategy strategy : test::strategiesAt(worldSize)) {
                SCOPED_TRACE(fmt::format("{} ranks, {}{}", worldSize, toText(strategy), tied ? ", tied" : ""));
                configuration.parallel.strategy = strategy;
                expectEqual(weightsAfter(0, worldSize, shape, configuration), expected);
            }
        }
    }
}

TEST(Worlds, weightDecayReachesTheSameTensors)
{
    at::set_num_threads(1);
    const shapes::ModelShape shape = awkwardShape();
    const NamedTensors first = test::randomWeights(shape, 7); // of a seed biases are zero, and nothing decays
    constexpr double kDecay = 0.5;
    constexpr double kRate = 1e-3; // trainStep()'s
    for (const int worldSize : {1, 3, 4, 5}) {
        for (const Strategy strategy : test::strategiesAt(worldSize)) {
            SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
            RunConfiguration configuration;
            configuration.parallel.strategy = strategy;
            configuration.optimizer.noDecay = {"norm", "bias", "block.2.ffn.up.*"};
            configuration.optimizer.weightDecay = 0;
            const NamedTensors without = weightsAfter(1, worldSize, shape, configuration, first);
            configuration.optimizer.weightDecay = kDecay;
            const NamedTensors decayed = weightsAfter(1, worldSize, shape, configuration, first);
            for (const auto &[name, weight] : first) {
                const bool spared = name.find("norm") != std::string::npos || name.ends_with(".bias") ||
                                    name.starts_with("block.2.ffn.up.");
                if (spared) {
                    EXPECT_TRUE(at::equal(decayed.at(name), without.at(name))) << name;
                    continue;
                }
                const at::Tensor lost = without.at(name) - decayed.at(name);
                EXPECT_NEAR((lost.norm() / weight.norm()).item<double>() / (kRate * kDecay), 1.0, 1e-2) << name;
            }
        }
    }
}

TEST(Worlds, aTiedWeightCountsOnceInTheNormAndAFrozenOneNotAtAll)
{
    at::set_num_threads(1);
    TrainingCase test;
    test.tied = true;
    test.steps = 1;
    test.configuration.units = {{.match = "block.1.*", .frozen = true}, {.kind = ParameterKind::Norm}};
    for (const int worldSize : {1, 2, 3, 4}) {
        for (const Strategy strategy : test::strategiesAt(worldSize)) {
            SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
            test.worldSize = worldSize;
            test.configuration.parallel.strategy = strategy;
            const Curve curve = train(test);
            EXPECT_TRUE(curve.firstGradients.contains("embedding.weight"));
            EXPECT_FALSE(curve.firstGradients.contains("block.1.ffn.up.weight"));
            test::expectNormOfTheGradients(curve);
        }
    }
}

TEST(Worlds, microBatchesWeighByTheirCountedTokens)
{
    at::set_num_threads(1);
    TrainingCase test;
    test.countsUnequally = true;
    test.shape = test::smallShape(true, false, true);
    test.steps = 8;
    test.configuration.optimizer.clipNorm = 0.25;
    const Curve reference = train(test);
    const at::Tensor tokens = test::stepTokens(*test.shape, 0);
    const at::Tensor targets = test::stepTargets(test, tokens);
    const auto ofAutograd =
        test::referenceStep(*test.shape, reference.firstWeights, tokens.slice(1, 0, test::kPositions), targets,
                            1.0 / targets.ge(0).sum().item<double>());
    EXPECT_NEAR(reference.losses.front() / ofAutograd.loss, 1.0, 1e-5);
    for (const auto &[name, gradient] : reference.firstGradients) {
        const at::Tensor &expected = ofAutograd.gradients.at(name);
        EXPECT_LT(((gradient - expected).norm() / expected.norm()).item<double>(), 1e-5) << name;
    }
    // At 2 ranks the last one of three micro-batches of rank 0 counts nothing.
    for (const auto &[worldSize, accumulation] : {std::pair{1, 3}, {2, 1}, {2, 3}, {3, 1}, {3, 2}}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::None}) {
            SCOPED_TRACE(fmt::format("{} ranks, {} micro-batches, {}", worldSize, accumulation, toText(strategy)));
            test.worldSize = worldSize;
            test.accumulation = accumulation;
            test.configuration.parallel.strategy = strategy;
            expectSameCurve(train(test), reference, Precision::Fp32);
        }
    }
}

TEST(Worlds, aValidationBetweenTwoStepsChangesNothing)
{
    at::set_num_threads(1);
    const test::TemporaryFolder folder;
    std::vector<std::pair<int, Strategy>> cases = {{4, Strategy::Hybrid}};
    for (const Strategy strategy : test::strategiesAt(2))
        cases.emplace_back(2, strategy);
    for (const auto &[worldSize, strategy] : cases) {
        for (const double clipNorm : {0.0, 0.25}) { // without clipping an update is under way when it begins
            SCOPED_TRACE(fmt::format("{} ranks, {}, clipped at {}", worldSize, toText(strategy), clipNorm));
            TrainingCase test;
            test.worldSize = worldSize;
            test.steps = 6;
            test.accumulation = 3;
            RunConfiguration &configuration = test.configuration;
            configuration.parallel.strategy = strategy;
            configuration.precision.compute = Precision::Bf16;
            configuration.optimizer.clipNorm = clipNorm;
            configuration.memory.recompute = Recompute::Block;
            configuration.memory.activationOffload = true;
            configuration.offload.parameters = configuration.offload.optimizer = OffloadPlace::Nvme;
            configuration.offload.path = folder.path().string();
            const Curve plain = train(test);
            test.validateEvery = 1;
            expectEqualToTheBit(train(test), plain);
        }
    }
}

} // namespace shardscope
