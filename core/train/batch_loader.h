// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: B sequences, T tokens of one.
#pragma once

#include "core/data/dataset.h"

#include <ATen/core/Tensor.h>
#include <cstdint>

namespace shardscope::train {

/// Which samples a rank takes: each step takes the next G samples, whatever the number of ranks; of these, rank r takes
/// the r-th part, micro-batch by micro-batch. So a job that goes on with other ranks, micro-batches or another G reads
/// each sample once, in the order in which it would have been read.
struct BatchPlan
{
    int64_t ranks = 1;
    int64_t rank = 0;
    int64_t microBatch = 1;
    int64_t accumulation = 1;
    int64_t stepsBefore = 0;   ///< that were done when this job began
    int64_t samplesBefore = 0; ///< that those took

    int64_t globalBatch() const { return ranks * microBatch * accumulation; }
    /// What all ranks have taken after so many steps.
    int64_t samplesAfter(int64_t stepsDone) const { return samplesBefore + (stepsDone - stepsBefore) * globalBatch(); }
    /// Of the step that follows `stepsDone` ones.
    int64_t firstSample(int64_t stepsDone, int64_t microIndex) const
    {
        return samplesAfter(stepsDone) + (rank * accumulation + microIndex) * microBatch;
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
