// SPDX-License-Identifier: Apache-2.0
// The formulas of a unit's memory on a GPU, where there is none: against what was counted on an H200 with torch 2.11
// (tests/model/unit_memory_test.cpp counts it anew where there is one).
#include "core/shapes/unit_memory.h"
#include "tests/shapes/wide_shape.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace shardscope::shapes {

namespace {

enum Size { kWide, kOdd };

struct Measured
{
    Size size;
    Precision compute;
    Recompute recompute;
    int64_t unit; ///< the embedding, two blocks, the head
    int64_t keptBytes;
    int64_t forwardBytes;
    int64_t backwardBytes;
};

constexpr Measured kMeasured[] = {
    {kWide, Precision::Fp32, Recompute::Off, 0, 16777216, 16777216, 0},
    {kWide, Precision::Fp32, Recompute::Off, 1, 134545424, 201654288, 202178576},
    {kWide, Precision::Fp32, Recompute::Off, 2, 151322640, 218431504, 218955792},
    {kWide, Precision::Fp32, Recompute::Off, 3, 0, 185155592, 0},
    {kWide, Precision::Fp32, Recompute::Selective, 0, 16777216, 16777216, 0},
    {kWide, Precision::Fp32, Recompute::Selective, 1, 17039376, 201654288, 202178576},
    {kWide, Precision::Fp32, Recompute::Selective, 2, 33816592, 218431504, 218955792},
    {kWide, Precision::Fp32, Recompute::Selective, 3, 0, 185155592, 0},
    {kWide, Precision::Fp32, Recompute::Block, 0, 16777216, 16777216, 0},
    {kWide, Precision::Fp32, Recompute::Block, 1, 0, 201654288, 202178576},
    {kWide, Precision::Fp32, Recompute::Block, 2, 16777216, 218431504, 218955792},
    {kWide, Precision::Fp32, Recompute::Block, 3, 0, 185155592, 0},
    {kWide, Precision::Bf16, Recompute::Off, 0, 8388608, 8388608, 0},
    {kWide, Precision::Bf16, Recompute::Off, 1, 67436560, 100990992, 109642000},
    {kWide, Precision::Bf16, Recompute::Off, 2, 75825168, 109379600, 118030608},
    {kWide, Precision::Bf16, Recompute::Off, 3, 0, 92880904, 0},
    {kWide, Precision::Bf16, Recompute::Selective, 0, 8388608, 8388608, 0},
    {kWide, Precision::Bf16, Recompute::Selective, 1, 8650768, 100990992, 109642000},
    {kWide, Precision::Bf16, Recompute::Selective, 2, 17039376, 109379600, 118030608},
    {kWide, Precision::Bf16, Recompute::Selective, 3, 0, 92880904, 0},
    {kWide, Precision::Bf16, Recompute::Block, 0, 8388608, 8388608, 0},
    {kWide, Precision::Bf16, Recompute::Block, 1, 0, 100990992, 109642000},
    {kWide, Precision::Bf16, Recompute::Block, 2, 8388608, 109379600, 118030608},
    {kWide, Precision::Bf16, Recompute::Block, 3, 0, 92880904, 0},
    {kWide, Precision::Fp16, Recompute::Off, 0, 8388608, 8388608, 0},
    {kWide, Precision::Fp16, Recompute::Off, 1, 67436560, 100990992, 109642000},
    {kWide, Precision::Fp16, Recompute::Off, 2, 75825168, 109379600, 118030608},
    {kWide, Precision::Fp16, Recompute::Off, 3, 0, 92880904, 0},
    {kWide, Precision::Fp16, Recompute::Selective, 0, 8388608, 8388608, 0},
    {kWide, Precision::Fp16, Recompute::Selective, 1, 8650768, 100990992, 109642000},
    {kWide, Precision::Fp16, Recompute::Selective, 2, 17039376, 109379600, 118030608},
    {kWide, Precision::Fp16, Recompute::Selective, 3, 0, 92880904, 0},
    {kWide, Precision::Fp16, Recompute::Block, 0, 8388608, 8388608, 0},
    {kWide, Precision::Fp16, Recompute::Block, 1, 0, 100990992, 109642000},
    {kWide, Precision::Fp16, Recompute::Block, 2, 8388608, 109379600, 118030608},
    {kWide, Precision::Fp16, Recompute::Block, 3, 0, 92880904, 0},
    {kOdd, Precision::Fp32, Recompute::Off, 0, 3108000, 3108000, 0},
    {kOdd, Precision::Fp32, Recompute::Off, 1, 24515904, 92326248, 181420176},
    {kOdd, Precision::Fp32, Recompute::Off, 2, 27623904, 95434248, 184528176},
    {kOdd, Precision::Fp32, Recompute::Off, 3, 0, 35082752, 0},
    {kOdd, Precision::Fp32, Recompute::Selective, 0, 3108000, 3108000, 0},
    {kOdd, Precision::Fp32, Recompute::Selective, 1, 2983680, 92326248, 181420176},
    {kOdd, Precision::Fp32, Recompute::Selective, 2, 6091680, 95434248, 184528176},
    {kOdd, Precision::Fp32, Recompute::Selective, 3, 0, 35082752, 0},
    {kOdd, Precision::Fp32, Recompute::Block, 0, 3108000, 3108000, 0},
    {kOdd, Precision::Fp32, Recompute::Block, 1, 0, 92326248, 181420176},
    {kOdd, Precision::Fp32, Recompute::Block, 2, 3108000, 95434248, 184528176},
    {kOdd, Precision::Fp32, Recompute::Block, 3, 0, 35082752, 0},
    {kOdd, Precision::Bf16, Recompute::Off, 0, 1554000, 1554000, 0},
    {kOdd, Precision::Bf16, Recompute::Off, 1, 12264168, 84804888, 172469136},
    {kOdd, Precision::Bf16, Recompute::Off, 2, 13818168, 86358888, 174023136},
    {kOdd, Precision::Bf16, Recompute::Off, 3, 0, 17811596, 0},
    {kOdd, Precision::Bf16, Recompute::Selective, 0, 1554000, 1554000, 0},
    {kOdd, Precision::Bf16, Recompute::Selective, 1, 1491840, 84804888, 172469136},
    {kOdd, Precision::Bf16, Recompute::Selective, 2, 3045840, 86358888, 174023136},
    {kOdd, Precision::Bf16, Recompute::Selective, 3, 0, 17811596, 0},
    {kOdd, Precision::Bf16, Recompute::Block, 0, 1554000, 1554000, 0},
    {kOdd, Precision::Bf16, Recompute::Block, 1, 0, 84804888, 172469136},
    {kOdd, Precision::Bf16, Recompute::Block, 2, 1554000, 86358888, 174023136},
    {kOdd, Precision::Bf16, Recompute::Block, 3, 0, 17811596, 0},
    {kOdd, Precision::Fp16, Recompute::Off, 0, 1554000, 1554000, 0},
    {kOdd, Precision::Fp16, Recompute::Off, 1, 12264168, 84804888, 172469136},
    {kOdd, Precision::Fp16, Recompute::Off, 2, 13818168, 86358888, 174023136},
    {kOdd, Precision::Fp16, Recompute::Off, 3, 0, 19786588, 0},
    {kOdd, Precision::Fp16, Recompute::Selective, 0, 1554000, 1554000, 0},
    {kOdd, Precision::Fp16, Recompute::Selective, 1, 1491840, 84804888, 172469136},
    {kOdd, Precision::Fp16, Recompute::Selective, 2, 3045840, 86358888, 174023136},
    {kOdd, Precision::Fp16, Recompute::Selective, 3, 0, 19786588, 0},
    {kOdd, Precision::Fp16, Recompute::Block, 0, 1554000, 1554000, 0},
    {kOdd, Precision::Fp16, Recompute::Block, 1, 0, 84804888, 172469136},
    {kOdd, Precision::Fp16, Recompute::Block, 2, 1554000, 86358888, 174023136},
    {kOdd, Precision::Fp16, Recompute::Block, 3, 0, 19786588, 0},
};

WorkSize workOf(const Measured &row)
{
    // A GPU of this kind computes half precision by cuDNN; no fused operator takes the odd head size.
    const AttentionKind attention = row.size == kOdd                 ? AttentionKind::Plain
                                    : row.compute == Precision::Fp32 ? AttentionKind::Efficient
                                                                     : AttentionKind::Cudnn;
    return {.sequences = row.size == kOdd ? 2 : 8,
            .positions = row.size == kOdd ? 777 : 1024,
            .compute = row.compute,
            .device = DeviceKind::Cuda,
            .attention = attention};
}

UnitMemory predict(const Measured &row)
{
    const ModelShape shape = row.size == kOdd ? test::oddWideShape() : test::wideShape(2, 8);
    const WorkSize work = workOf(row);
    if (row.unit == 0)
        return embeddingMemory(shape, work);
    if (row.unit > shape.layers)
        return headMemory(shape, work);
    return blockMemory(shape, work, {.layer = row.unit - 1, .recompute = row.recompute});
}

bool isWithinTwoPercent(int64_t predicted, int64_t measured)
{
    return std::abs(predicted - measured) * 50 <= measured;
}

TEST(CudaMemory, isWhatWasMeasuredWithinTwoPercent)
{
    for (const Measured &row : kMeasured) {
        SCOPED_TRACE(std::string(row.size == kOdd ? "odd " : "wide ") + std::string(toText(row.compute)) + " " +
                     std::string(toText(row.recompute)) + " unit " + std::to_string(row.unit));
        const UnitMemory memory = predict(row);
        EXPECT_PRED2(isWithinTwoPercent, memory.keptBytes, row.keptBytes);
        EXPECT_PRED2(isWithinTwoPercent, memory.forwardBytes, row.forwardBytes);
        EXPECT_PRED2(isWithinTwoPercent, memory.backwardBytes, row.backwardBytes);
    }
}

} // namespace

} // namespace shardscope::shapes
