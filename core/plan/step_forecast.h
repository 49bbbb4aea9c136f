// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/memory_ledger.h"
#include "core/shapes/model_shape.h"

namespace shardscope::plan {

/// What a rank's device holds at the fullest moment of a step, without what an operation takes only while it runs and
/// what the plan knows nothing of: those are measured.
struct StepForecast
{
    LedgerBytes states;
    int64_t activations = 0;
    int64_t hostBytes = 0; ///< beside it, what lies in pinned host memory all through the step
    int64_t total() const { return states.total() + activations; }
};

/// The fuller one of two moments: backward begins (all blocks' activations, the loss's gradients), and backward ends
/// (all gradients, one block's activations). Of blocks that offload activations the statistics alone stay.
StepForecast forecastOf(const shapes::ModelPlan &plan, const shapes::ModelShape &shape,
                        const config::RunConfiguration &configuration);

} // namespace shardscope::plan
