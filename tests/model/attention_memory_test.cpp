// SPDX-License-Identifier: Apache-2.0
// What plain attention takes, for which no model on the CPU has a use: formulas against an allocator. (The CPU's own
// operator is measured with its block in unit_memory_test.cpp.)
#include "core/shapes/attention_memory.h"

#include "core/model/attention.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/reference_decoder.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace shardscope {

namespace {

using test::CountingAllocator;

/// A unit that nothing else is counted to.
constexpr observe::UnitIndex kAttention = 1000;

class PlainAttentionMemory : public testing::TestWithParam<std::tuple<Precision, int64_t>>
{
};

/// LibTorch's products make the same copies on the CPU as on CUDA.
TEST_P(PlainAttentionMemory, isTheFormulasToTheByte)
{
    const auto &[compute, positions] = GetParam();
    at::set_num_threads(1);
    test::TagObserver observer;
    const shapes::ModelShape shape = test::smallShape(true, false, false);
    const shapes::WorkSize work{.sequences = 2,
                                .positions = positions,
                                .compute = compute,
                                .device = DeviceKind::Cpu,
                                .attention = shapes::AttentionKind::Plain};
    const auto heads = [&, positions = positions](int64_t count) {
        const at::Tensor rows = at::ones({work.sequences, positions, count, shape.headSize});
        return rows.to(work.compute == Precision::Fp32 ? at::kFloat : at::kBFloat16).transpose(1, 2);
    };
    const at::Tensor packed = heads(3 * shape.heads);
    const at::Tensor q = packed.narrow(1, 0, shape.heads);
    const at::Tensor k = packed.narrow(1, shape.heads, shape.heads);
    const at::Tensor v = packed.narrow(1, 2 * shape.heads, shape.heads);
    const at::Tensor dout = heads(shape.heads);
    const model::Attention attention(work.attention);
    const shapes::AttentionMemory formulas(shape, work, 0);

    const observe::MemoryScope scope(observer, {MemoryCategory::Temporary, kAttention});
    shapes::MemoryWalk walk;
    formulas.forward(walk);
    CountingAllocator::instance().forgetHighest();
    const model::AttentionSaved saved = attention.forward(q, k, v);
    EXPECT_EQ(CountingAllocator::instance().highestWorkBytes(kAttention), walk.peak());
    EXPECT_EQ(formulas.leftBytes(), walk.live());
    formulas.backward(walk);
    CountingAllocator::instance().forgetHighest();
    const model::AttentionGradients gradients = attention.backward(dout, q, k, v, saved);
    EXPECT_EQ(CountingAllocator::instance().highestWorkBytes(kAttention), walk.peak());
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlainAttentionMemory,
                         testing::Combine(testing::Values(Precision::Fp32, Precision::Bf16), testing::Values(8, 300)),
                         [](const auto &info) {
                             return fmt::format("{}_{}", toText(std::get<0>(info.param)), std::get<1>(info.param));
                         });

} // namespace

} // namespace shardscope
