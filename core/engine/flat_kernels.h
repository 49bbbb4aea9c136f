// SPDX-License-Identifier: Apache-2.0
// The fused passes over flat fp32 tensors, on the device that they lie on. Moments are fp32 or bf16. CUDA: enqueued on
// the current stream.
#pragma once

#include "core/model/kernels/kernels.h"

#include <ATen/core/Tensor.h>

namespace shardscope::engine {

/// to = from, cast where the dtypes differ. Without a wait for a device. From fp32 on the CPU it is made by the calling
/// thread alone: those of queues must not start a second team of OpenMP threads beside the computation's.
void copyInto(const at::Tensor &to, const at::Tensor &from);
/// sum (fp64 scalar) += Σ values². The same sum every time.
void addSquares(const at::Tensor &sum, const at::Tensor &values);
/// One AdamW update of equally long flat tensors; scale (fp32 scalar beside them, or undefined) multiplies the
/// gradient, and where it is NaN nothing changes.
void adamW(const at::Tensor &master, const at::Tensor &moment1, const at::Tensor &moment2, const at::Tensor &gradient,
           const at::Tensor &scale, const model::kernels::AdamWStep &step);
/// One update of torch.optim.SGD: g = scale·g + weightDecay·p; m = momentum·m + g (m = g at the first step);
/// p −= learningRate·m. moment is undefined without momentum, scale as adamW()'s. gradient is used up.
void sgd(const at::Tensor &master, const at::Tensor &moment, const at::Tensor &gradient, const at::Tensor &scale,
         double learningRate, double momentum, double weightDecay);

} // namespace shardscope::engine
