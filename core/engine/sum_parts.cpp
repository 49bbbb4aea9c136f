// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sum_parts.h"

#include <algorithm>
#include <bit>

namespace shardscope::engine {

/// Blocks that stay in the first cache while the parts are added one after the other.
static constexpr int64_t kBlock = 1024;

template <typename T>
static T valueOf(T element)
{
    return element;
}

static float valueOf(uint16_t bf16)
{
    return std::bit_cast<float>(uint32_t{bf16} << 16U);
}

template <typename T, typename Part>
static void sumBlocks(T *sum, const std::vector<const Part *> &parts, int64_t elements, bool accumulate)
{
    T block[kBlock];
    for (int64_t start = 0; start < elements; start += kBlock) {
        const int64_t count = std::min(kBlock, elements - start);
        if (accumulate)
            std::copy_n(sum + start, count, block);
        else
            std::fill_n(block, count, T{0});
        for (const Part *part : parts) {
            for (int64_t i = 0; i < count; ++i)
                block[i] += valueOf(part[start + i]);
        }
        std::copy_n(block, count, sum + start);
    }
}

void sumParts(float *sum, const std::vector<const float *> &parts, int64_t elements, bool accumulate)
{
    sumBlocks(sum, parts, elements, accumulate);
}

void sumParts(double *sum, const std::vector<const double *> &parts, int64_t elements, bool accumulate)
{
    sumBlocks(sum, parts, elements, accumulate);
}

void sumParts(float *sum, const std::vector<const uint16_t *> &parts, int64_t elements, bool accumulate)
{
    sumBlocks(sum, parts, elements, accumulate);
}

} // namespace shardscope::engine
