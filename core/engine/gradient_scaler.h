// SPDX-License-Identifier: Apache-2.0
// Shape suffix: K the numbers of ScalerRule.
#pragma once

#include "core/model/kernels/kernels.h"

#include <ATen/core/Tensor.h>
#include <optional>

namespace shardscope::engine {

/// What a checkpoint keeps of a scaler.
struct ScalerState
{
    double scale = 1;
    int64_t growthTracker = 0; ///< steps without overflow since the scale last changed
    int64_t skippedSteps = 0;  ///< all in all
    bool operator==(const ScalerState &) const = default;
};

/// The loss scale of fp16 training, with torch.amp.GradScaler's rule: gradients are computed `scale` times as large, so
/// that small ones are not lost below fp16's 6e-8; a step in which one overflows is not made and lowers the scale, and
/// growthInterval steps without overflow raise it. It lives on the device, where the steps decide on it without a wait.
class GradientScaler
{
public:
    /// The scale falls no further: below 1 it would make gradients smaller than they are. What overflows at 1 is a
    /// gradient beyond fp16's 65504, or NaN, and no scale helps.
    static constexpr double kFloor = 1;

    struct Options
    {
        double initialScale = 65536;
        double growthFactor = 2;
        double backoff = 0.5;
        int64_t growthInterval = 2000;
    };
    GradientScaler(at::Device device, const Options &options);

    /// What the gradients of the step at hand are multiplied by: an fp64 scalar on the device.
    at::Tensor scale() const { return m_state_K.select(0, model::kernels::ScalerRule::kScale); }
    const at::Tensor &stateTensor() const { return m_state_K; }
    const model::kernels::ScalerRule &rule() const { return m_rule; }

    /// After the updates so far; waits for the device.
    ScalerState state() const;
    void restore(const ScalerState &state);

private:
    model::kernels::ScalerRule m_rule;
    at::Tensor m_state_K; ///< fp64
};

} // namespace shardscope::engine
