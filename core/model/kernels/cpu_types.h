// SPDX-License-Identifier: Apache-2.0
// What the CPU kernels share: elements of all precisions, and clones of a function for the levels of x86-64.
#pragma once

#include "core/base/bf16.h"
#include "core/model/kernels/kernels.h"

#include <cstdint>

#if defined(__x86_64__)
#define SHARDSCOPE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHARDSCOPE_CLONES
#endif
#define SHARDSCOPE_INLINE __attribute__((always_inline)) static inline
/// An iteration reads and writes its own index only, also where input and output are the same row.
#define SHARDSCOPE_ELEMENTWISE _Pragma("GCC ivdep")

namespace shardscope::model::kernels::cpu {

struct Bf16
{
    uint16_t bits;
};

using Fp16 = _Float16;

SHARDSCOPE_INLINE float load(const float *p, int64_t i)
{
    return p[i];
}

SHARDSCOPE_INLINE float load(const Bf16 *p, int64_t i)
{
    return floatOfBf16(p[i].bits);
}

SHARDSCOPE_INLINE float load(const Fp16 *p, int64_t i)
{
    return static_cast<float>(p[i]);
}

SHARDSCOPE_INLINE void store(Fp16 *p, int64_t i, float value)
{
    p[i] = static_cast<Fp16>(value);
}

SHARDSCOPE_INLINE void store(float *p, int64_t i, float value)
{
    p[i] = value;
}

SHARDSCOPE_INLINE void store(Bf16 *p, int64_t i, float value)
{
    p[i].bits = bf16BitsOf(value);
}

} // namespace shardscope::model::kernels::cpu

/// The statement with T as the precision's type.
#define SHARDSCOPE_DISPATCH(precision, ...)                                                                            \
    if ((precision) == Precision::Bf16) {                                                                              \
        using T = Bf16;                                                                                                \
        __VA_ARGS__;                                                                                                   \
    } else if ((precision) == Precision::Fp16) {                                                                       \
        using T = Fp16;                                                                                                \
        __VA_ARGS__;                                                                                                   \
    } else {                                                                                                           \
        using T = float;                                                                                               \
        __VA_ARGS__;                                                                                                   \
    }
#define IN(p) static_cast<const T *>(p)
#define OUT(p) static_cast<T *>(p)
