// SPDX-License-Identifier: Apache-2.0
// The ledger against what an engine of several ranks allocates: to the byte, at rest and at the peak of a step, each
// category by itself. Ranks are threads of this process, and the allocator knows whose thread asks.
#include "core/model/decoder.h"
#include "core/plan/memory_ledger.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace shardscope {

using config::RunConfiguration;
using plan::LedgerBytes;
using plan::MemoryLedger;
using test::CountingAllocator;

static CountingAllocator &allocator()
{
    return CountingAllocator::instance();
}

static shapes::ModelShape shapeOf(bool tied)
{
    shapes::ModelShape shape = test::smallShape(true, tied, true);
    shape.layers = 4;
    return shape;
}

static void step(model::Decoder &decoder, const RunConfiguration &configuration)
{
    const at::Tensor tokens = at::ones({1, 8}, at::kLong);
    at::Tensor loss;
    for (int64_t i = 0; i < configuration.train.accumulation; ++i)
        loss = decoder.forwardBackward(tokens, tokens, 0.01, i + 1 == configuration.train.accumulation);
    decoder.engine().optimizerStep(1e-3, 1.0, decoder.engine().reduceScalars(loss));
}

static LedgerBytes liveOf(int rank)
{
    const auto live = [&](MemoryCategory category) { return allocator().liveBytes(category, rank); };
    return {live(MemoryCategory::Parameters), live(MemoryCategory::Optimizer), live(MemoryCategory::Gathered),
            live(MemoryCategory::Gradients)};
}

static LedgerBytes highestOf(int rank)
{
    const auto highest = [&](MemoryCategory category) { return allocator().highestBytes(category, rank); };
    return {highest(MemoryCategory::Parameters), highest(MemoryCategory::Optimizer), highest(MemoryCategory::Gathered),
            highest(MemoryCategory::Gradients)};
}

static void expectEqual(const LedgerBytes &measured, const LedgerBytes &ledger, const char *when)
{
    EXPECT_EQ(measured.parameters, ledger.parameters) << when;
    EXPECT_EQ(measured.optimizer, ledger.optimizer) << when;
    EXPECT_EQ(measured.gathered, ledger.gathered) << when;
    EXPECT_EQ(measured.gradients, ledger.gradients) << when;
}

/// Two steps on ranks of their own, each compared with the ledger, which is returned.
static MemoryLedger compare(int worldSize, const RunConfiguration &configuration, bool tied = false)
{
    test::TagObserver observer;
    const shapes::ModelShape shape = shapeOf(tied);
    const auto modelPlan = shapes::planOf(shapes::unitsOf(shape), configuration, worldSize).value();
    const MemoryLedger ledger = plan::ledgerOf(modelPlan, plan::LedgerOptions::from(configuration));
    test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
        const int rank = communicator.rank();
        allocator().thisThreadIsRank(rank);
        model::Decoder decoder(shape, configuration, communicator, observer);
        decoder.engine().initialize(1);
        step(decoder, configuration); // makes the moments
        for (int i = 0; i < 2; ++i) {
            communicator.barrier();
            if (rank == 0)
                allocator().forgetHighest();
            communicator.barrier();
            step(decoder, configuration);
            expectEqual(highestOf(rank), ledger.peak, "at the peak");
            expectEqual(liveOf(rank), ledger.atRest, "at rest");
        }
    });
    return ledger;
}

static std::vector<RunConfiguration> strategiesFor(int worldSize)
{
    std::vector<RunConfiguration> all;
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None, Strategy::Hybrid}) {
        RunConfiguration configuration;
        configuration.parallel.strategy = strategy;
        configuration.parallel.shardGroup = strategy == Strategy::Hybrid ? 2 : 0;
        configuration.train.accumulation = 1;
        if (strategy != Strategy::Hybrid || worldSize == 4)
            all.push_back(configuration);
    }
    return all;
}

class Ledger : public testing::TestWithParam<std::tuple<int, Precision>>
{
};

TEST_P(Ledger, isWhatEachStrategyAllocates)
{
    const auto [worldSize, precision] = GetParam();
    for (RunConfiguration configuration : strategiesFor(worldSize)) {
        configuration.precision.compute = precision;
        for (const int64_t accumulation : {1, 2}) {
            for (const ReduceEvery every : {ReduceEvery::MicroBatch, ReduceEvery::Step}) {
                SCOPED_TRACE(fmt::format("{}, {} micro-batches, reduced every {}",
                                         toText(configuration.parallel.strategy), accumulation, toText(every)));
                configuration.train.accumulation = accumulation;
                configuration.parallel.reduceEvery = every;
                compare(worldSize, configuration, accumulation == 2);
            }
        }
    }
}

TEST_P(Ledger, knowsOptimizersPrefetchingAndSmallerGroups)
{
    const auto [worldSize, precision] = GetParam();
    RunConfiguration configuration = strategiesFor(worldSize).front();
    configuration.precision.compute = precision;
    for (const Prefetch prefetch : {Prefetch::Off, Prefetch::Pre, Prefetch::Post}) {
        for (const int64_t depth : {1, 2}) {
            SCOPED_TRACE(fmt::format("prefetch {} {}", toText(prefetch), depth));
            configuration.parallel.prefetch = prefetch;
            configuration.parallel.prefetchDepth = depth;
            configuration.parallel.forwardPrefetch = prefetch == Prefetch::Pre;
            configuration.parallel.reshardGroup = depth == 2 ? worldSize / 2 : 0;
            configuration.optimizer.kind = depth == 2 ? OptimizerKind::Sgd : OptimizerKind::AdamW;
            configuration.optimizer.momentum = prefetch == Prefetch::Pre ? 0.9 : 0.0;
            configuration.precision.moments = depth == 1 ? precision : Precision::Fp32;
            compare(worldSize, configuration);
        }
    }
}

TEST_P(Ledger, knowsTheLimitOnWhatIsGathered)
{
    const auto [worldSize, precision] = GetParam();
    RunConfiguration configuration = strategiesFor(worldSize).front();
    configuration.precision.compute = precision;
    configuration.parallel.prefetch = Prefetch::Pre;
    configuration.parallel.prefetchDepth = 3;
    const auto modelPlan = shapes::planOf(shapes::unitsOf(shapeOf(false)), configuration, worldSize).value();
    const shapes::UnitPlan &block = modelPlan.units[1];
    ASSERT_EQ(block.buckets.size(), 1U);
    const int64_t blockBytes = shapes::layOut(block, block.buckets[0], worldSize).paddedElements *
                               static_cast<int64_t>(shapes::bytesOf(precision));
    const int64_t withoutLimit = compare(worldSize, configuration).peak.gathered;
    // A block and the three ahead of it; what is needed at once is gathered under any limit.
    for (const auto &[limitBytes, blocks] : {std::pair{2 * blockBytes, 2}, {blockBytes - 1, 1}}) {
        SCOPED_TRACE(fmt::format("{} bytes", limitBytes));
        configuration.parallel.gatherLimitBytes = limitBytes;
        EXPECT_EQ(withoutLimit - compare(worldSize, configuration).peak.gathered, (4 - blocks) * blockBytes);
    }
}

TEST_P(Ledger, knowsBucketsOfRulesAndWhatIsFrozen)
{
    const auto [worldSize, precision] = GetParam();
    RunConfiguration configuration = strategiesFor(worldSize).front();
    configuration.precision.compute = precision;
    configuration.units = {{.match = "embedding.*", .settings = {{"parallel.strategy", "none"}}},
                           {.kind = ParameterKind::Norm, .settings = {{"parallel.strategy", "grad_op"}}},
                           {.match = "block.1.ffn.*", .wrap = true},
                           {.match = "block.2.attention.*", .frozen = true}};
    compare(worldSize, configuration);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Ledger,
                         testing::Combine(testing::Values(2, 4), testing::Values(Precision::Fp32, Precision::Bf16)),
                         [](const auto &info) {
                             return fmt::format("{}ranks{}", std::get<0>(info.param), toText(std::get<1>(info.param)));
                         });

/// The formulas as the documentation has them, AdamW in bf16: P elements padded, N ranks that share them.
TEST(LedgerFormulas, areThoseOfTheDocumentation)
{
    const shapes::ModelShape shape = shapeOf(false);
    const int64_t parameters = shapes::parameterCount(shape);
    for (const int worldSize : {2, 4}) {
        for (RunConfiguration configuration : strategiesFor(worldSize)) {
            SCOPED_TRACE(fmt::format("{} at {}", toText(configuration.parallel.strategy), worldSize));
            configuration.precision.compute = Precision::Bf16;
            const auto modelPlan = shapes::planOf(shapes::unitsOf(shape), configuration, worldSize).value();
            const MemoryLedger ledger = plan::ledgerOf(modelPlan, plan::LedgerOptions::from(configuration));
            const int64_t padded = parameters + ledger.paddingElements;
            EXPECT_GT(ledger.paddingElements, 0);
            const Strategy strategy = configuration.parallel.strategy;
            const int64_t sharers = strategy == Strategy::None ? 1 : strategy == Strategy::Hybrid ? 2 : worldSize;
            const int64_t resident = strategy == Strategy::None ? 2 * padded : 0;
            EXPECT_EQ(ledger.atRest.parameters, 4 * padded / sharers + resident);
            EXPECT_EQ(ledger.atRest.optimizer, 8 * padded / sharers);
            EXPECT_EQ(ledger.atRest.gathered, 0);
            EXPECT_EQ(ledger.atRest.gradients, 0);
            EXPECT_LE(ledger.peak.gradients - ledger.unreduced, 4 * padded / sharers);
            if (strategy == Strategy::GradOp) {
                EXPECT_EQ(ledger.peak.gathered, 2 * padded);
            }
            if (strategy == Strategy::None) {
                EXPECT_EQ(ledger.peak.gathered, 0);
                EXPECT_EQ(ledger.peak.gradients, 4 * padded);
                EXPECT_EQ(ledger.unreduced, 0);
            }
        }
    }
}

} // namespace shardscope
