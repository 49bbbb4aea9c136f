// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/gradient_scaler.h"
#include "core/engine/step_scalars.h"

namespace shardscope::engine {

/// What a step's update multiplies gradients by: the clip coefficient over the scaler's scale. It is NaN where the
/// step's gradient or loss is not finite: an update then changes nothing, on any rank, for all know the same sums. It
/// is decided on the device, and nothing waits for it.
class StepFactor
{
public:
    /// Gradients are taken as they are.
    StepFactor() = default;
    /// clipNorm 0: no clipping. scaler: null, or whose scale the gradients have; it goes on to the next step's scale.
    StepFactor(const StepScalars &scalars, double clipNorm, GradientScaler *scaler);

    /// An fp32 scalar on the device; undefined where gradients are taken as they are.
    const at::Tensor &tensor() const { return m_factor; }
    /// Begins to copy it to the host. The result waits, in any thread, until it is there.
    std::function<at::Tensor()> toHost() const;

private:
    at::Tensor m_factor;
};

} // namespace shardscope::engine
