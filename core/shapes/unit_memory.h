// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/shapes/model_shape.h"
#include "core/shapes/work_size.h"

#include <cstdint>

namespace shardscope::shapes {

/// Bytes that a unit's computation asks its device for in one micro-batch, without parameters and gradients: what it
/// keeps for its backward (activations), and at its fullest moment all of that and what is gone after an operation
/// (temporary). Each of the functions below follows the operations of its unit in their order, so its source is the
/// code it names.
///
/// Not in it: what allocators round up, what adapters' products have between them (rank elements a token), and what a
/// product's library takes while it multiplies (oneDNN some hundred KiB a thread; cuBLAS's is no unit's).
struct UnitMemory
{
    int64_t keptBytes = 0;     ///< from its forward to its backward
    int64_t forwardBytes = 0;  ///< at most in its forward, what it keeps included
    int64_t backwardBytes = 0; ///< at most in its recomputation and backward, what it kept included
    int64_t leftBytes = 0;     ///< beyond what it keeps, handed on to the next unit, which computes beside it
    bool operator==(const UnitMemory &) const = default;
};

/// model::Decoder::forwardUnits(): its output is the first block's input.
UnitMemory embeddingMemory(const ModelShape &shape, const WorkSize &work);

/// How one block is computed.
struct BlockWork
{
    int64_t layer = 0;
    Recompute recompute = Recompute::Off;
    bool givesWeightGradients = true; ///< false where its matrices are frozen
};
/// model::Block. The first block's input is counted to the embedding.
UnitMemory blockMemory(const ModelShape &shape, const WorkSize &work, const BlockWork &block);

/// model::Head::run(), whose forward and backward are one. What it leaves is the stream's gradient, which all backward
/// works on.
UnitMemory headMemory(const ModelShape &shape, const WorkSize &work, bool givesWeightGradients = true);

/// How many of a micro-batch's rows of logits exist at once. On a GPU enough for full speed of the products; on a CPU
/// few enough for the caches, yet so many that the output weight's gradient is not passed over too often.
int64_t logitRows(DeviceKind device, int64_t rows, int64_t rowBytes);

} // namespace shardscope::shapes
