// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: B sequences, T tokens of one.
#pragma once

#include "core/data/dataset.h"

#include <ATen/core/Tensor.h>
#include <cstdint>

namespace shardscope::train {

/// Which samples a rank takes: step s (the first is 0) takes [s·G, (s+1)·G) whatever the number of ranks; of these,
/// rank r takes the r-th part, micro-batch by micro-batch.
struct BatchPlan
{
    int64_t ranks = 1;
    int64_t rank = 0;
    int64_t microBatch = 1;
    int64_t accumulation = 1;

    int64_t globalBatch() const { return ranks * microBatch * accumulation; }
    int64_t firstSample(int64_t step, int64_t microIndex) const
    {
        return step * globalBatch() + (rank * accumulation + microIndex) * microBatch;
    }
};

/// int64, on the engine's device.
struct Batch
{
    at::Tensor tokens_BT;
    at::Tensor targets_BT; ///< the next tokens; -1 where none is counted
    int64_t countedTokens = 0;
};

/// Makes batches of a dataset's samples. On CUDA they are copied from pinned memory without a wait.
class BatchLoader
{
public:
    BatchLoader(const data::Dataset &dataset, at::Device device);

    /// Training samples [first, first + count).
    Batch training(int64_t first, int64_t count) const;
    /// Held-out samples [first, first + count) as far as there are any; the rest of the rows is padding that counts
    /// for nothing, so that all ranks run batches of one shape.
    Batch validation(int64_t first, int64_t count, int64_t available) const;

private:
    template <typename ReadSample>
    Batch make(int64_t count, ReadSample readSample) const;

    const data::Dataset &m_dataset;
    at::Device m_device;
};

} // namespace shardscope::train
