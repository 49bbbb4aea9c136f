// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardscope::engine {

/// fp32 to bf16, to nearest, ties to even, as LibTorch does. On the calling thread alone: the queue's thread must not
/// start a second team of OpenMP threads beside the computation's.
void castToBf16(uint16_t *to, const float *from, int64_t elements);
/// fp32 to fp16 likewise.
void castToFp16(uint16_t *to, const float *from, int64_t elements);

} // namespace shardscope::engine
