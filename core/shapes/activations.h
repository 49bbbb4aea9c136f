// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/shapes/model_shape.h"

#include <cstdint>

namespace shardscope::shapes {

/// Bytes that a decoder block keeps from its forward to its backward for each token of a micro-batch; which tensors
/// they are is said by model::BlockSaved. With c bytes of the compute dtype, C hidden, A = heads · headSize, K =
/// keyValueHeads · headSize, F feed-forward:
///
///     off         c · (2C + 2A + 2K + 2F)  and  4 · (2 + heads)
///     selective   c · (C + A)              and  4 · heads
///     block       c · C                    and  0
///
/// A block's input counts as its own. The first one's is the embedding's output, whose unit the recorder names.
/// Attention without a fused operator (sliding windows on the CPU, GPUs before 8.0) keeps no statistics; the fp32 one
/// of CUDA rounds their positions up to a multiple of 32, and each of CUDA's adds two numbers a block.
struct BlockActivations
{
    int64_t matrixBytes = 0;     ///< in the compute dtype; activation offload moves these to the host
    int64_t statisticsBytes = 0; ///< fp32, of the norms and of attention; they stay on the device
    int64_t bytes() const { return matrixBytes + statisticsBytes; }
    bool operator==(const BlockActivations &) const = default;
};

BlockActivations blockActivationsPerToken(const ModelShape &shape, Precision compute, Recompute recompute);

} // namespace shardscope::shapes
