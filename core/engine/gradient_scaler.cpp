// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gradient_scaler.h"

#include <ATen/ATen.h>

namespace shardscope::engine {

using Rule = model::kernels::ScalerRule;

GradientScaler::GradientScaler(at::Device device, const Options &options)
    : m_rule{options.growthFactor, options.backoff, options.growthInterval, kFloor}
    , m_state_K(at::zeros({Rule::kCount}, at::TensorOptions(device).dtype(at::kDouble)))
{
    restore({options.initialScale, 0, 0});
}

ScalerState GradientScaler::state() const
{
    const at::Tensor host_K = m_state_K.cpu();
    const double *state = host_K.const_data_ptr<double>();
    return {state[Rule::kScale], static_cast<int64_t>(state[Rule::kGrowthTracker]),
            static_cast<int64_t>(state[Rule::kSkippedSteps])};
}

void GradientScaler::restore(const ScalerState &state)
{
    const at::NoGradGuard noGrad;
    const at::Tensor host_K = at::empty({Rule::kCount}, at::kDouble);
    auto *to = host_K.mutable_data_ptr<double>();
    to[Rule::kScale] = state.scale;
    to[Rule::kGrowthTracker] = static_cast<double>(state.growthTracker);
    to[Rule::kSkippedSteps] = static_cast<double>(state.skippedSteps);
    m_state_K.copy_(host_K);
}

} // namespace shardscope::engine
