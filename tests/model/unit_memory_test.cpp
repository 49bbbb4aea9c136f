// SPDX-License-Identifier: Apache-2.0
// What a unit keeps from its forward to its backward and what its operations take for the moment: the formulas against
// what an allocator counts, a unit and a direction at a time.
#include "core/shapes/unit_memory.h"

#include "core/engine/dtype.h"
#include "core/model/decoder.h"
#include "core/plan/step_forecast.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/shapes/wide_shape.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cstdio>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <tuple>

namespace shardscope {

namespace {

using observe::UnitIndex;
using shapes::UnitMemory;
using shapes::WorkSize;
using test::CountingAllocator;

CountingAllocator &counter()
{
    return CountingAllocator::instance();
}

/// Looks at the spans in which units compute: the most that each held in them, and what each had kept when the loss
/// began.
class UnitMeter : public test::TagObserver
{
public:
    int64_t beginSpan(const observe::SpanInfo &info) override
    {
        const bool isForward = info.name == "forward" || info.name == "loss";
        const bool isUnits = isForward || info.name == "recompute" || info.name == "backward";
        m_spans.push_back({info.unit, isUnits, isForward});
        if (info.name == "loss") {
            for (const auto &[unit, bytes] : counter().liveBytesOfUnits(MemoryCategory::Activations))
                measured[unit].keptBytes = bytes;
        }
        if (isUnits)
            counter().forgetHighest();
        return 0;
    }
    void endSpan(int64_t) override
    {
        const Span span = m_spans.back();
        m_spans.pop_back();
        if (!span.isUnits)
            return;
        UnitMemory &unit = measured[span.unit];
        int64_t &highest = span.isForward ? unit.forwardBytes : unit.backwardBytes;
        highest = std::max(highest, counter().highestWorkBytes(span.unit));
    }
    std::map<UnitIndex, UnitMemory> measured;

private:
    struct Span
    {
        UnitIndex unit;
        bool isUnits;
        bool isForward;
    };
    std::vector<Span> m_spans;
};

/// Of each unit, in two micro-batches: the second one's gradients are added to the first one's.
std::map<UnitIndex, UnitMemory> measure(const shapes::ModelShape &shape, const WorkSize &work, Recompute recompute)
{
    at::set_num_threads(1);
    UnitMeter meter;
    meter.setMemoryTag({});
    engine::Communicator::Options options;
    options.device = work.device == DeviceKind::Cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
    const auto communicator = engine::Communicator::create(options, meter);
    config::RunConfiguration configuration;
    configuration.precision.compute = work.compute;
    configuration.memory.recompute = recompute;
    model::Decoder decoder(shape, configuration, **communicator, meter);
    decoder.engine().initialize(1);
    const at::Tensor tokens =
        at::ones({work.sequences, work.positions}, at::TensorOptions(options.device).dtype(at::kLong));
    decoder.forwardBackward(tokens, tokens, 1e-3, false);
    decoder.forwardBackward(tokens, tokens, 1e-3, true);
    return meter.measured;
}

/// What leaves a unit isn't measured by itself.
std::map<UnitIndex, UnitMemory> predict(const shapes::ModelShape &shape, const WorkSize &work, Recompute recompute)
{
    std::map<UnitIndex, UnitMemory> units;
    units[0] = shapes::embeddingMemory(shape, work);
    for (int64_t layer = 0; layer < shape.layers; ++layer)
        units[static_cast<UnitIndex>(layer + 1)] =
            shapes::blockMemory(shape, work, {.layer = layer, .recompute = recompute});
    units[static_cast<UnitIndex>(shape.layers + 1)] = shapes::headMemory(shape, work);
    for (auto &[unit, memory] : units)
        memory.leftBytes = 0;
    return units;
}

std::string textOf(const UnitMemory &memory)
{
    return fmt::format("kept {:>11}  forward {:>11}  backward {:>11}", memory.keptBytes, memory.forwardBytes,
                       memory.backwardBytes);
}

void expectWithin(double share, int64_t measured, int64_t predicted, const std::string &what)
{
    EXPECT_NEAR(static_cast<double>(predicted), static_cast<double>(measured), share * static_cast<double>(measured))
        << what;
}

struct SizeCase
{
    const char *name;
    shapes::ModelShape shape;
    int64_t sequences;
    int64_t positions;
};

WorkSize workOn(DeviceKind device, shapes::AttentionKind attention, const SizeCase &size, Precision compute)
{
    return {.sequences = size.sequences,
            .positions = size.positions,
            .compute = compute,
            .device = device,
            .attention = attention};
}

using UnitCase = std::tuple<SizeCase, Precision, Recompute>;

std::string nameOf(const testing::TestParamInfo<UnitCase> &info)
{
    const auto &[size, compute, recompute] = info.param;
    return fmt::format("{}_{}_{}", size.name, toText(compute), toText(recompute));
}

class UnitMemoryCpu : public testing::TestWithParam<UnitCase>
{
protected:
    // Of a product of a few rows most is what oneDNN packs.
    void SetUp() override { at::globalContext().setUserEnabledMkldnn(false); }
    void TearDown() override { at::globalContext().setUserEnabledMkldnn(true); }
};

TEST_P(UnitMemoryCpu, isTheFormulasToTheByte)
{
    const auto &[size, compute, recompute] = GetParam();
    const WorkSize work = workOn(DeviceKind::Cpu, shapes::AttentionKind::Cpu, size, compute);
    const auto measured = measure(size.shape, work, recompute);
    const auto predicted = predict(size.shape, work, recompute);
    ASSERT_EQ(measured.size(), predicted.size());
    for (const auto &[unit, memory] : predicted)
        EXPECT_EQ(textOf(measured.at(unit)), textOf(memory)) << "unit " << unit;
}

std::vector<SizeCase> smallSizes()
{
    shapes::ModelShape plain = test::smallShape(false, false, false);
    plain.layers = 2;
    shapes::ModelShape grouped = test::smallShape(false, false, true);
    grouped.layers = 2;
    return {{"odd", test::smallShape(true, true, true), 3, 21},
            {"everything", test::shapeWithEverything(true), 3, 21},
            {"plain", plain, 2, 200},
            {"long", grouped, 1, 800}};
}

INSTANTIATE_TEST_SUITE_P(Sizes, UnitMemoryCpu,
                         testing::Combine(testing::ValuesIn(smallSizes()),
                                          testing::Values(Precision::Fp32, Precision::Bf16, Precision::Fp16),
                                          testing::Values(Recompute::Off, Recompute::Selective, Recompute::Block)),
                         nameOf);

void expectWithinTwoPercent(const SizeCase &size, const WorkSize &work, Recompute recompute)
{
    const auto measured = measure(size.shape, work, recompute);
    for (const auto &[unit, memory] : predict(size.shape, work, recompute)) {
        const UnitMemory &own = measured.at(unit);
        const std::string what =
            fmt::format("{} {} {} unit {}: measured  {}\n{:>32}{}", size.name, toText(work.compute), toText(recompute),
                        unit, textOf(own), "predicted ", textOf(memory));
        std::puts(what.c_str());
        expectWithin(0.02, own.keptBytes, memory.keptBytes, what);
        expectWithin(0.02, own.forwardBytes, memory.forwardBytes, what);
        expectWithin(0.02, own.backwardBytes, memory.backwardBytes, what);
    }
}

/// oneDNN's own buffers count here: about a MiB, however large the product.
TEST(UnitMemoryOneDnn, isNearTheFormulas)
{
    const SizeCase size{"wide", test::wideShape(1, 2), 8, 1024};
    const WorkSize work = workOn(DeviceKind::Cpu, shapes::AttentionKind::Cpu, size, Precision::Bf16);
    expectWithinTwoPercent(size, work, Recompute::Off);
}

/// Tells the counter of what CUDA's allocator gives out; from the first call to the end of the process.
void countCudaMemory()
{
    namespace native = c10::cuda::CUDACachingAllocator;
    static const bool isCounted = [] {
        native::init(c10::cuda::device_count());
        native::attachAllocatorTraceTracker([](const native::TraceEntry &entry) {
            void *address = reinterpret_cast<void *>(entry.addr_);
            if (entry.action_ == native::TraceEntry::ALLOC)
                counter().allocated(address, static_cast<int64_t>(entry.size_));
            else if (entry.action_ == native::TraceEntry::FREE_REQUESTED)
                counter().freed(address);
        });
        return true;
    }();
    ASSERT_TRUE(isCounted);
}

class UnitMemoryCuda : public testing::TestWithParam<UnitCase>
{
protected:
    void SetUp() override
    {
        if (!torch::cuda::is_available())
            GTEST_SKIP() << "no CUDA device";
        countCudaMemory();
    }
};

TEST_P(UnitMemoryCuda, isNearTheFormulas)
{
    const auto &[size, compute, recompute] = GetParam();
    const model::Attention attention(at::Device(at::kCUDA, 0), engine::scalarTypeOf(compute), size.shape.headSize);
    const WorkSize work = workOn(DeviceKind::Cuda, attention.kind(), size, compute);
    expectWithinTwoPercent(size, work, recompute);
}

/// What cuBLAS and cuBLASLt work in is there before the first product, is no unit's, and nothing is added to it later.
TEST_P(UnitMemoryCuda, leavesNothingTemporaryOfAProducts)
{
    shapes::ModelShape shape = std::get<0>(GetParam()).shape;
    shape.queryKeyValueBias = true;
    test::TagObserver observer;
    observer.setMemoryTag({});
    engine::Communicator::Options options;
    options.device = at::Device(at::kCUDA, 0);
    const auto communicator = engine::Communicator::create(options, observer);
    config::RunConfiguration configuration;
    std::tie(std::ignore, configuration.precision.compute, configuration.memory.recompute) = GetParam();
    at::cuda::clearCublasWorkspaces();
    const int64_t before = counter().liveBytes(MemoryCategory::Other);
    model::Decoder decoder(shape, configuration, **communicator, observer);
    // cuBLASLt's is the same memory, or is the allocator's smallest block for a MiB.
    const int64_t taken = counter().liveBytes(MemoryCategory::Other) - before;
    EXPECT_GE(taken, static_cast<int64_t>(at::cuda::getChosenWorkspaceSize()));
    EXPECT_LE(taken, static_cast<int64_t>(at::cuda::getChosenWorkspaceSize()) + (2 << 20));
    if (at::cuda::getCurrentDeviceProperties()->major == 9) {
        EXPECT_EQ(static_cast<int64_t>(at::cuda::getChosenWorkspaceSize()), plan::kProductsBytes);
    }
    decoder.engine().initialize(1);
    const at::Tensor tokens = at::ones({1, 64}, at::TensorOptions(options.device).dtype(at::kLong));
    decoder.forwardBackward(tokens, tokens, 1e-3, true);
    EXPECT_EQ(counter().liveBytes(MemoryCategory::Temporary), 0);
    EXPECT_EQ(counter().liveBytes(MemoryCategory::Activations), 0);
}

std::vector<SizeCase> sizesOnCuda()
{
    return {{"wide", test::wideShape(2, 8), 8, 1024}, {"odd", test::oddWideShape(), 2, 777}};
}

INSTANTIATE_TEST_SUITE_P(Sizes, UnitMemoryCuda,
                         testing::Combine(testing::ValuesIn(sizesOnCuda()),
                                          testing::Values(Precision::Fp32, Precision::Bf16, Precision::Fp16),
                                          testing::Values(Recompute::Off, Recompute::Selective, Recompute::Block)),
                         nameOf);

} // namespace

} // namespace shardscope
