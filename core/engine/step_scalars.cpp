// SPDX-License-Identifier: Apache-2.0
#include "core/engine/step_scalars.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <stdexcept>

namespace shardscope::engine {

StepScalars::StepScalars(at::Tensor scalars_K, double order)
    : m_scalars_K(std::move(scalars_K))
    , m_order(order)
{
    if (!m_scalars_K.is_cuda()) {
        m_host_K = m_scalars_K;
        return;
    }
    m_host_K = at::empty(m_scalars_K.sizes(), at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
    m_host_K.copy_(m_scalars_K, true);
    const auto copied = std::make_shared<at::cuda::CUDAEvent>();
    copied->record(c10::cuda::getCurrentCUDAStream());
    m_waitForCopy = [copied] { copied->synchronize(); };
}

StepScalars StepScalars::withoutDevice() const
{
    StepScalars other = *this;
    other.m_scalars_K.reset();
    return other;
}

StepScalars::Values StepScalars::host() const
{
    if (m_waitForCopy)
        m_waitForCopy();
    Values values;
    const double *data = m_host_K.const_data_ptr<double>();
    if (data[kOrder] != m_order)
        throw std::runtime_error(
            "the ranks did not issue the same collectives in the same order: their results are void");
    values.scale = data[kScale];
    const double scale = values.scale > 0 ? values.scale : 1.0;
    values.gradientSquares = data[kSquares] / (scale * scale);
    values.lossSum = data[kLoss];
    std::copy_n(data + kFirstWord, kWords, values.words.begin());
    return values;
}

} // namespace shardscope::engine
