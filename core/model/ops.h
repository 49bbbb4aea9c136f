// SPDX-License-Identifier: Apache-2.0
// The decoder's operations on tensors, each on the device of its operands: the fused kernels, cut into rows for the
// threads on the CPU, and matrix products. Data is in the compute dtype; statistics are fp32. A gradient place without
// a tensor is a frozen parameter's: nothing is written there.
// Shape suffixes: M rows (tokens), C width, F hidden of the feed-forward, O and I a weight's out and in, V vocabulary.
#pragma once

#include "core/engine/engine.h"
#include "core/model/kernels/kernels.h"

#include <ATen/core/Tensor.h>

namespace shardscope::model::ops {

/// y_MC = norm(x_MC + residual_MC) · weight_C, rstd_M the reciprocal deviations. sum_MC receives x + residual; it and
/// residual_MC may be undefined together.
void rmsNorm(const at::Tensor &y_MC, const at::Tensor &rstd_M, const at::Tensor &sum_MC, const at::Tensor &x_MC,
             const at::Tensor &residual_MC, const at::Tensor &weight_C, double eps);
/// dx_MC = addend_MC + the norm's gradient for dy_MC; addend_MC may be undefined, or dx_MC itself. The weight's
/// gradient goes to place.
void rmsNormBackward(const at::Tensor &dx_MC, const engine::Engine::GradientPlace &place, const at::Tensor &dy_MC,
                     const at::Tensor &x_MC, const at::Tensor &weight_C, const at::Tensor &rstd_M,
                     const at::Tensor &addend_MC);

/// Rotates q and k in packed rows, in place.
void rope(const at::Tensor &qkv, const at::Tensor &cosine_TH, const at::Tensor &sine_TH,
          const kernels::QkvLayout &layout);
/// dq, dk, dv as [B, heads, T, headSize], the last dimension contiguous.
void ropeBackward(const at::Tensor &dqkv, const at::Tensor &dq, const at::Tensor &dk, const at::Tensor &dv,
                  const at::Tensor &cosine_TH, const at::Tensor &sine_TH, const kernels::QkvLayout &layout);

/// Norms of each head of q and k and their rotation: qk [M, (heads + keyValueHeads) · D] from packed rows, which stay;
/// rstd [M, heads + keyValueHeads]. The weights have D = headSize elements.
void headNormRope(const at::Tensor &qk, const at::Tensor &rstd, const at::Tensor &qkv, const at::Tensor &qWeight_D,
                  const at::Tensor &kWeight_D, const at::Tensor &cosine_TH, const at::Tensor &sine_TH,
                  const kernels::QkvLayout &layout, double eps);
/// What headNormRopeBackward() reads of the forward.
struct HeadNormSaved
{
    at::Tensor qkv;
    at::Tensor rstd;
    at::Tensor qWeight_D;
    at::Tensor kWeight_D;
};
/// dq, dk, dv as in ropeBackward(). The weights' gradients go to the places.
void headNormRopeBackward(const at::Tensor &dqkv, const engine::Engine::GradientPlace &qPlace,
                          const engine::Engine::GradientPlace &kPlace, const at::Tensor &dq, const at::Tensor &dk,
                          const at::Tensor &dv, const HeadNormSaved &saved, const at::Tensor &cosine_TH,
                          const at::Tensor &sine_TH, const kernels::QkvLayout &layout);

/// gateUp_MF2: gate's F columns, then up's.
void swiglu(const at::Tensor &h_MF, const at::Tensor &gateUp_MF2);
/// h_MF receives the forward's output again. dGateUp_MF2 may be gateUp_MF2, and h_MF may be dh_MF.
void swigluBackward(const at::Tensor &dGateUp_MF2, const at::Tensor &h_MF, const at::Tensor &dh_MF,
                    const at::Tensor &gateUp_MF2);

/// logits_MV become their gradient, times scale and gradientScale (an fp64 scalar beside them, or undefined); losses_M
/// (fp32) are not scaled. Negative targets are not counted.
void crossEntropy(const at::Tensor &logits_MV, const at::Tensor &losses_M, const at::Tensor &targets_M, double scale,
                  const at::Tensor &gradientScale = {});
void crossEntropyLoss(const at::Tensor &logits_MV, const at::Tensor &losses_M, const at::Tensor &targets_M);

void embedding(const at::Tensor &x_MC, const at::Tensor &weight_VC, const at::Tensor &tokens_M);
void embeddingBackward(const engine::Engine::GradientPlace &place, const at::Tensor &dx_MC, const at::Tensor &tokens_M);

/// y_MO = x_MI · weight_OIᵀ + bias_O, which may be undefined.
void linear(const at::Tensor &y_MO, const at::Tensor &x_MI, const at::Tensor &weight_OI, const at::Tensor &bias_O = {});
/// place (fp32) (+)= the sums of dy_MO's columns, in fp32. dy_MO may be columns of a wider matrix.
void biasBackward(const engine::Engine::GradientPlace &place, const at::Tensor &dy_MO);
/// dx_MI = dy_MO · weight_OI, or added to it.
void linearBackwardInput(const at::Tensor &dx_MI, const at::Tensor &dy_MO, const at::Tensor &weight_OI,
                         bool accumulate = false);
/// place (fp32) (+)= dy_MOᵀ · x_MI. On CUDA a bf16 product comes out in fp32; on the CPU it is rounded first, as
/// PyTorch's own mixed precision does, and an fp16 product is on both: it overflows where PyTorch's does, so that loss
/// scales are the same.
void linearBackwardWeight(const engine::Engine::GradientPlace &place, const at::Tensor &dy_MO, const at::Tensor &x_MI);

} // namespace shardscope::model::ops
