// SPDX-License-Identifier: Apache-2.0
#include "core/engine/cast.h"

#include "core/base/bf16.h"

#include <bit>

namespace shardscope::engine {

#if defined(__x86_64__)
#define SHARDSCOPE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHARDSCOPE_CLONES
#endif

SHARDSCOPE_CLONES
void castToBf16(uint16_t *to, const float *from, int64_t elements)
{
    for (int64_t i = 0; i < elements; ++i)
        to[i] = bf16BitsOf(from[i]);
}

SHARDSCOPE_CLONES
void castToFp16(uint16_t *to, const float *from, int64_t elements)
{
    for (int64_t i = 0; i < elements; ++i)
        to[i] = std::bit_cast<uint16_t>(static_cast<_Float16>(from[i]));
}

} // namespace shardscope::engine
