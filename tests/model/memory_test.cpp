// SPDX-License-Identifier: Apache-2.0
// What the engine holds, counted by an allocator of the test's own: at rest the sums of the ledger, in a step no more
// gathered buffers and unreduced gradients than stated. All ranks share this process, so figures are sums over ranks.
#include "core/model/decoder.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <atomic>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace shardscope {

using test::CountingAllocator;
using test::TagObserver;

struct MemoryCase
{
    Strategy strategy;
    Precision precision;
    OptimizerKind optimizer;
};

class Memory : public testing::TestWithParam<MemoryCase>
{
protected:
    void SetUp() override
    {
        at::set_num_threads(1);
        observer.setMemoryTag({});
        tokens = torch::randint(0, shape.vocabulary, {2, 16}, at::kLong);
    }
    TagObserver observer;
    const shapes::ModelShape shape = test::smallShape(false, false, false);
    at::Tensor tokens;
};

static CountingAllocator &allocator()
{
    return CountingAllocator::instance();
}

static int64_t paddedElements(engine::Engine &engine)
{
    int64_t sum = 0;
    for (observe::UnitIndex unit = 0; unit < engine.unitCount(); ++unit)
        sum += engine.buckets()[static_cast<size_t>(unit)].layout.paddedElements;
    return sum;
}

static void step(model::Decoder &decoder, const at::Tensor &tokens, const at::Tensor &targets)
{
    decoder.forwardBackward(tokens, targets, 0.01, false);
    const at::Tensor loss = decoder.forwardBackward(tokens, targets, 0.01, true);
    const engine::StepScalars scalars = decoder.engine().reduceScalars(loss);
    decoder.engine().optimizerStep(1e-3, 1.0, scalars);
}

TEST_P(Memory, atRestIsTheLedgers)
{
    const MemoryCase &test = GetParam();
    auto communicator = engine::Communicator::create({}, observer);
    allocator().forgetHighest();
    const int64_t parametersBefore = allocator().liveBytes(MemoryCategory::Parameters);
    config::RunConfiguration configuration;
    configuration.parallel.strategy = test.strategy;
    configuration.precision.compute = test.precision;
    configuration.optimizer.kind = test.optimizer;
    model::Decoder decoder(shape, configuration, **communicator, observer);
    decoder.engine().initialize(1);
    const int64_t elements = paddedElements(decoder.engine());
    const int64_t masterBytes = test.precision == Precision::Bf16 && test.strategy == Strategy::None ? 6 : 4;
    const int64_t momentBytes = test.optimizer == OptimizerKind::AdamW ? 8 : 0;
    for (int i = 0; i < 2; ++i) {
        step(decoder, tokens, tokens);
        decoder.forwardLoss(tokens, tokens, 0.01);
        EXPECT_EQ(allocator().liveBytes(MemoryCategory::Parameters) - parametersBefore, masterBytes * elements);
        EXPECT_EQ(allocator().liveBytes(MemoryCategory::Optimizer), momentBytes * elements);
        for (const MemoryCategory none :
             {MemoryCategory::Gathered, MemoryCategory::Gradients, MemoryCategory::Activations,
              MemoryCategory::Communication, MemoryCategory::Temporary})
            EXPECT_EQ(allocator().liveBytes(none), 0) << toText(none);
    }
    EXPECT_EQ(allocator().highestBytes(MemoryCategory::Gradients), 4 * elements);
    EXPECT_GT(allocator().highestBytes(MemoryCategory::Activations), 0);
    const int64_t block = decoder.engine().buckets()[1].layout.paddedElements;
    const int64_t edge = decoder.engine().buckets().back().layout.paddedElements;
    const bool gathers = test.precision == Precision::Bf16 && test.strategy != Strategy::None;
    const int64_t kept = test.strategy == Strategy::Full ? 2 * block + edge : elements;
    EXPECT_EQ(allocator().highestBytes(MemoryCategory::Gathered), gathers ? 2 * kept : 0);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Memory,
                         testing::Values(MemoryCase{Strategy::Full, Precision::Bf16, OptimizerKind::AdamW},
                                         MemoryCase{Strategy::Full, Precision::Fp32, OptimizerKind::AdamW},
                                         MemoryCase{Strategy::GradOp, Precision::Bf16, OptimizerKind::AdamW},
                                         MemoryCase{Strategy::None, Precision::Bf16, OptimizerKind::AdamW},
                                         MemoryCase{Strategy::None, Precision::Fp32, OptimizerKind::Sgd}),
                         [](const auto &info) {
                             return std::string(toText(info.param.strategy)) +
                                    std::string(toText(info.param.precision)) +
                                    std::string(toText(info.param.optimizer));
                         });

TEST_F(Memory, keepsNoSlotAheadOfTheLastBlockOfBackward)
{
    allocator().forgetHighest();
    auto communicator = engine::Communicator::create({}, observer);
    config::RunConfiguration configuration;
    configuration.precision.compute = Precision::Bf16;
    model::Decoder decoder(shape, configuration, **communicator, observer);
    engine::Engine &engine = decoder.engine();
    engine.initialize(1);
    const int64_t blockBytes = 2 * engine.buckets()[1].layout.paddedElements;
    const auto gatheredBytes = [] { return allocator().liveBytes(MemoryCategory::Gathered); };
    engine.beginPass(engine::Engine::PassKind::Train, true);
    engine.acquire(2, Phase::Backward, {1});
    EXPECT_EQ(gatheredBytes(), 2 * blockBytes);
    engine.release(2);
    engine.acquire(1, Phase::Backward);
    EXPECT_EQ(gatheredBytes(), blockBytes);
    engine.release(1);
    engine.endPass();
    EXPECT_EQ(gatheredBytes(), 0);
}

TEST_F(Memory, ofAdaptersAndAFrozenBase)
{
    auto communicator = engine::Communicator::create({}, observer);
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        allocator().forgetHighest();
        const int64_t before = allocator().liveBytes(MemoryCategory::Parameters);
        config::RunConfiguration configuration;
        configuration.parallel.strategy = strategy;
        configuration.precision.compute = Precision::Bf16;
        configuration.lora.rank = 4;
        model::Decoder decoder(shape, configuration, **communicator, observer);
        decoder.engine().initialize(1);
        step(decoder, tokens, tokens);
        int64_t base = 0;
        int64_t adapters = 0;
        for (const engine::Bucket &bucket : decoder.engine().buckets())
            (bucket.frozen ? base : adapters) += bucket.layout.paddedElements;
        const int64_t masterBytes = strategy == Strategy::None ? 6 : 4;
        EXPECT_EQ(allocator().liveBytes(MemoryCategory::Parameters) - before, 2 * base + masterBytes * adapters);
        EXPECT_EQ(allocator().liveBytes(MemoryCategory::Optimizer), 8 * adapters);
        EXPECT_EQ(allocator().highestBytes(MemoryCategory::Gradients), 4 * adapters);
        EXPECT_LT(8 * adapters, base);
    }
}

TEST_F(Memory, ofARankIsItsShareOfTheWhole)
{
    // All that lives at rest, whatever it is; ledger_test.cpp has the categories.
    const int64_t before = allocator().liveBytes();
    for (const auto &[strategy, bytes] :
         {std::pair{Strategy::Full, 12}, {Strategy::GradOp, 12}, {Strategy::None, 28}}) {
        std::atomic<int64_t> atRest{0};
        std::atomic<int64_t> elements{0};
        test::runRanks(2, observer, [&, strategy = strategy](engine::Communicator &communicator) {
            config::RunConfiguration configuration;
            configuration.parallel.strategy = strategy;
            configuration.precision.compute = Precision::Bf16;
            model::Decoder decoder(shape, configuration, communicator, observer);
            decoder.engine().initialize(1);
            step(decoder, tokens, tokens);
            communicator.barrier();
            if (communicator.rank() == 0) {
                atRest = allocator().liveBytes() - before;
                elements = paddedElements(decoder.engine());
            }
            communicator.barrier();
        });
        // Two replicas of 12 + 2 bytes a parameter, or one set of 12 shared by both; RoPE's tables are the rest.
        EXPECT_NEAR(static_cast<double>(atRest), static_cast<double>(bytes * elements), 8192.0) << toText(strategy);
    }
}

} // namespace shardscope
