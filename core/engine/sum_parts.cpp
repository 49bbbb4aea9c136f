// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sum_parts.h"

#include <algorithm>

namespace shardscope::engine {

/// Blocks that stay in the first cache while the parts are added one after the other.
static constexpr int64_t kBlock = 1024;

template <typename T>
static void sumBlocks(T *sum, const std::vector<const T *> &parts, int64_t elements, bool accumulate)
{
    T block[kBlock];
    for (int64_t start = 0; start < elements; start += kBlock) {
        const int64_t count = std::min(kBlock, elements - start);
        if (accumulate)
            std::copy_n(sum + start, count, block);
        else
            std::fill_n(block, count, T{0});
        for (const T *part : parts) {
            for (int64_t i = 0; i < count; ++i)
                block[i] += part[start + i];
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

} // namespace shardscope::engine
