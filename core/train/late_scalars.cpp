// SPDX-License-Identifier: Apache-2.0
#include "core/train/late_scalars.h"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

namespace shardscope::train {

struct LateScalars::CudaCopy
{
    at::cuda::CUDAEvent done;
};

LateScalars::LateScalars(const engine::StepScalars &scalars)
{
    const at::Tensor &source_K = scalars.tensor();
    if (!source_K.is_cuda()) {
        m_host_K = source_K;
        return;
    }
    m_host_K = at::empty(source_K.sizes(), source_K.options().device(at::kCPU).pinned_memory(true));
    m_host_K.copy_(source_K, /*non_blocking=*/true);
    m_copy = std::make_unique<CudaCopy>();
    m_copy->done.record(c10::cuda::getCurrentCUDAStream(source_K.device().index()));
}

LateScalars::LateScalars() = default;
LateScalars::~LateScalars() = default;
LateScalars::LateScalars(LateScalars &&) noexcept = default;
LateScalars &LateScalars::operator=(LateScalars &&) noexcept = default;

engine::StepScalars::Values LateScalars::read() const
{
    if (m_copy)
        m_copy->done.synchronize();
    return engine::StepScalars(m_host_K).host();
}

} // namespace shardscope::train
