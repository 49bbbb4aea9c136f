// SPDX-License-Identifier: Apache-2.0
// bfloat16 as its bits: the upper half of an fp32. One rounding for kernels, casts and files.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__GNUC__)
#define SHARDSCOPE_ALWAYS_INLINE __attribute__((always_inline)) inline // also into clones for other processors
#else
#define SHARDSCOPE_ALWAYS_INLINE inline
#endif

namespace shardscope {

/// To nearest, ties to even, as LibTorch does. A NaN stays one: with its mantissa all in the lower half it would round
/// to infinity.
SHARDSCOPE_ALWAYS_INLINE uint16_t bf16BitsOf(float value)
{
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    return static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC0U : rounded);
}

SHARDSCOPE_ALWAYS_INLINE float floatOfBf16(uint16_t bits)
{
    return std::bit_cast<float>(uint32_t{bits} << 16U);
}

} // namespace shardscope
