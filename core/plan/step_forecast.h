// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/memory_ledger.h"
#include "core/shapes/model_shape.h"

namespace shardscope::plan {

/// What LibTorch 2.11 gives cuBLAS to work in, all through a run, on GPUs from 9.0 on. (8.1 MiB on older ones; of
/// CUBLAS_WORKSPACE_CONFIG the value that deterministic runs have asks for as much.)
inline constexpr int64_t kProductsBytes = int64_t{32} << 20;

/// What a rank's device holds at the fullest moment of a step: states, what units keep for their backward, and what
/// operations take for the moment. What the plan knows nothing of (buffers of collectives, what allocators round up,
/// CUDA's own) is measured.
struct StepForecast
{
    LedgerBytes states;
    int64_t activations = 0;
    int64_t temporary = 0;
    int64_t other = 0;     ///< kProductsBytes on CUDA
    int64_t hostBytes = 0; ///< beside it, what lies in pinned host memory all through the step
    int64_t total() const { return states.total() + activations + temporary + other; }
};

/// The fullest of a step's moments: each unit's forward, the loss, and each unit's backward, all in the last
/// micro-batch. On the CPU a rank is taken to have one thread; on CUDA, to have the fused attention that GPUs from 9.0
/// on have.
StepForecast forecastOf(const shapes::ModelPlan &plan, const shapes::ModelShape &shape,
                        const config::RunConfiguration &configuration);

} // namespace shardscope::plan
