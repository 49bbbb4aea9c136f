// SPDX-License-Identifier: Apache-2.0
#include "core/engine/step_factor.h"

#include "core/model/kernels/step_factor.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::engine {

namespace kernels = model::kernels;

StepFactor::StepFactor(const StepScalars &scalars, double clipNorm, GradientScaler *scaler)
    : m_factor(at::empty({}, scalars.tensor().options().dtype(at::kFloat)))
{
    static_assert(StepScalars::kSquares == 0 && StepScalars::kLoss == 1, "decideStep() reads them in this order");
    float *factor = m_factor.mutable_data_ptr<float>();
    const double *sums = scalars.tensor().const_data_ptr<double>();
    double *state = scaler ? scaler->stateTensor().mutable_data_ptr<double>() : nullptr;
    const kernels::ScalerRule rule = scaler ? scaler->rule() : kernels::ScalerRule();
    if (m_factor.is_cuda())
        kernels::cuda::stepFactor(factor, sums, clipNorm, state, rule, c10::cuda::getCurrentCUDAStream().stream());
    else
        *factor = kernels::decideStep(sums, clipNorm, state, rule);
}

std::function<at::Tensor()> StepFactor::toHost() const
{
    if (!m_factor.defined() || !m_factor.is_cuda())
        return [factor = m_factor] { return factor; };
    const at::Tensor host = at::empty({}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
    host.copy_(m_factor, true);
    const auto copied = std::make_shared<at::cuda::CUDAEvent>();
    copied->record(c10::cuda::getCurrentCUDAStream());
    return [host, copied] {
        copied->synchronize();
        return host;
    };
}

} // namespace shardscope::engine
