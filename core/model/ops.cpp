// SPDX-License-Identifier: Apache-2.0
#include "core/model/ops.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::model::ops {

using GradientPlace = engine::Engine::GradientPlace;

/// Rows that one CPU thread takes at least.
static constexpr int64_t kRowGrain = 16;

static Precision precisionOf(const at::Tensor &tensor)
{
    if (tensor.scalar_type() == at::kHalf)
        return Precision::Fp16;
    return tensor.scalar_type() == at::kBFloat16 ? Precision::Bf16 : Precision::Fp32;
}

static void *currentStream()
{
    return c10::cuda::getCurrentCUDAStream().stream();
}

static const void *dataOf(const at::Tensor &tensor)
{
    return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

static void *mutableDataOf(const at::Tensor &tensor)
{
    return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

/// The address of a row of a contiguous matrix.
static const void *rowOf(const at::Tensor &matrix, int64_t row)
{
    if (!matrix.defined())
        return nullptr;
    return static_cast<const char *>(matrix.const_data_ptr()) + row * matrix.size(-1) * matrix.element_size();
}

static void *mutableRowOf(const at::Tensor &matrix, int64_t row)
{
    return const_cast<void *>(rowOf(matrix, row));
}

void rmsNorm(const at::Tensor &y_MC, const at::Tensor &rstd_M, const at::Tensor &sum_MC, const at::Tensor &x_MC,
             const at::Tensor &residual_MC, const at::Tensor &weight_C, double eps)
{
    const Precision precision = precisionOf(x_MC);
    const int64_t width = x_MC.size(-1);
    float *rstd = rstd_M.mutable_data_ptr<float>();
    if (x_MC.is_cuda()) {
        kernels::cuda::rmsNormForward(precision, mutableDataOf(y_MC), rstd, mutableDataOf(sum_MC), dataOf(x_MC),
                                      dataOf(residual_MC), dataOf(weight_C), x_MC.size(0), width,
                                      static_cast<float>(eps), currentStream());
        return;
    }
    at::parallel_for(0, x_MC.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::rmsNormForward(precision, mutableRowOf(y_MC, begin), rstd + begin, mutableRowOf(sum_MC, begin),
                                     rowOf(x_MC, begin), rowOf(residual_MC, begin), dataOf(weight_C), end - begin,
                                     width, static_cast<float>(eps));
    });
}

/// Calls f(first row, end, sums) for shares of the rows, a thread each, and adds their sums to total in order; the
/// first thread's sums are total itself where it is alone.
template <typename F>
static void sumInShares(int64_t rows, const at::Tensor &total, F f)
{
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(at::get_num_threads(), rows / kRowGrain));
    const int64_t width = total.numel();
    const at::Tensor partial = parts == 1 ? total.view({1, width}) : at::zeros({parts, width}, total.options());
    at::parallel_for(0, parts, 1, [&](int64_t firstPart, int64_t endPart) {
        for (int64_t part = firstPart; part < endPart; ++part)
            f(rows * part / parts, rows * (part + 1) / parts, partial.mutable_data_ptr<float>() + part * width);
    });
    if (parts > 1)
        at::Tensor(total).add_(partial.sum(0).view_as(total));
}

static void rmsNormBackwardOnCpu(const at::Tensor &dx_MC, const at::Tensor &grad_C, const at::Tensor &dy_MC,
                                 const at::Tensor &x_MC, const at::Tensor &weight_C, const at::Tensor &rstd_M,
                                 const at::Tensor &addend_MC)
{
    sumInShares(x_MC.size(0), grad_C, [&](int64_t begin, int64_t end, float *sums) {
        kernels::cpu::rmsNormBackward(precisionOf(x_MC), mutableRowOf(dx_MC, begin), sums, rowOf(dy_MC, begin),
                                      rowOf(x_MC, begin), dataOf(weight_C), rstd_M.const_data_ptr<float>() + begin,
                                      rowOf(addend_MC, begin), end - begin, x_MC.size(1));
    });
}

void rmsNormBackward(const at::Tensor &dx_MC, const GradientPlace &place, const at::Tensor &dy_MC,
                     const at::Tensor &x_MC, const at::Tensor &weight_C, const at::Tensor &rstd_M,
                     const at::Tensor &addend_MC)
{
    // A frozen weight has no place: its sums come out on the side and are dropped.
    at::Tensor grad_C = place.grad.defined() ? place.grad : at::empty({x_MC.size(1)}, rstd_M.options());
    if (!place.accumulate)
        grad_C.zero_();
    if (!x_MC.is_cuda()) {
        rmsNormBackwardOnCpu(dx_MC, grad_C, dy_MC, x_MC, weight_C, rstd_M, addend_MC);
        return;
    }
    const int64_t width = x_MC.size(1);
    const at::Tensor scratch = at::empty({kernels::cuda::rmsNormBackwardScratch(width)}, grad_C.options());
    kernels::cuda::rmsNormBackward(precisionOf(x_MC), mutableDataOf(dx_MC), grad_C.mutable_data_ptr<float>(),
                                   dataOf(dy_MC), dataOf(x_MC), dataOf(weight_C), rstd_M.const_data_ptr<float>(),
                                   dataOf(addend_MC), scratch.mutable_data_ptr<float>(), x_MC.size(0), width,
                                   currentStream());
}

/// Small gradients that were summed elsewhere first.
static void addTo(const GradientPlace &place, const at::Tensor &sums)
{
    at::Tensor grad = place.grad;
    if (!grad.defined())
        return; // frozen
    if (place.accumulate)
        grad.add_(sums);
    else
        grad.copy_(sums);
}

void rope(const at::Tensor &qkv, const at::Tensor &cosine_TH, const at::Tensor &sine_TH,
          const kernels::QkvLayout &layout)
{
    const float *cosine = cosine_TH.const_data_ptr<float>();
    const float *sine = sine_TH.const_data_ptr<float>();
    if (qkv.is_cuda()) {
        kernels::cuda::ropeForward(precisionOf(qkv), mutableDataOf(qkv), cosine, sine, layout, currentStream());
        return;
    }
    at::parallel_for(0, layout.batch * layout.positions, kRowGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::ropeForward(precisionOf(qkv), mutableDataOf(qkv), cosine, sine, layout, begin, end - begin);
    });
}

static kernels::HeadsView viewOf(const at::Tensor &heads)
{
    TORCH_CHECK(heads.dim() == 4 && heads.stride(3) == 1, "heads must be [B, H, T, D] with contiguous D");
    return {heads.const_data_ptr(), heads.stride(0), heads.stride(1), heads.stride(2)};
}

void ropeBackward(const at::Tensor &dqkv, const at::Tensor &dq, const at::Tensor &dk, const at::Tensor &dv,
                  const at::Tensor &cosine_TH, const at::Tensor &sine_TH, const kernels::QkvLayout &layout)
{
    const float *cosine = cosine_TH.const_data_ptr<float>();
    const float *sine = sine_TH.const_data_ptr<float>();
    const kernels::HeadsView q = viewOf(dq);
    const kernels::HeadsView k = viewOf(dk);
    const kernels::HeadsView v = viewOf(dv);
    if (dqkv.is_cuda()) {
        kernels::cuda::ropeBackward(precisionOf(dqkv), mutableDataOf(dqkv), q, k, v, cosine, sine, layout,
                                    currentStream());
        return;
    }
    at::parallel_for(0, layout.batch * layout.positions, kRowGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::ropeBackward(precisionOf(dqkv), mutableDataOf(dqkv), q, k, v, cosine, sine, layout, begin,
                                   end - begin);
    });
}

void headNormRope(const at::Tensor &qk, const at::Tensor &rstd, const at::Tensor &qkv, const at::Tensor &qWeight_D,
                  const at::Tensor &kWeight_D, const at::Tensor &cosine_TH, const at::Tensor &sine_TH,
                  const kernels::QkvLayout &layout, double eps)
{
    const float *cosine = cosine_TH.const_data_ptr<float>();
    const float *sine = sine_TH.const_data_ptr<float>();
    float *deviations = rstd.mutable_data_ptr<float>();
    if (qkv.is_cuda()) {
        kernels::cuda::headNormRopeForward(precisionOf(qkv), mutableDataOf(qk), deviations, dataOf(qkv),
                                           dataOf(qWeight_D), dataOf(kWeight_D), cosine, sine, layout,
                                           static_cast<float>(eps), currentStream());
        return;
    }
    at::parallel_for(0, layout.batch * layout.positions, kRowGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::headNormRopeForward(precisionOf(qkv), mutableDataOf(qk), deviations, dataOf(qkv),
                                          dataOf(qWeight_D), dataOf(kWeight_D), cosine, sine, layout,
                                          static_cast<float>(eps), begin, end - begin);
    });
}

void headNormRopeBackward(const at::Tensor &dqkv, const GradientPlace &qPlace, const GradientPlace &kPlace,
                          const at::Tensor &dq, const at::Tensor &dk, const at::Tensor &dv, const HeadNormSaved &saved,
                          const at::Tensor &cosine_TH, const at::Tensor &sine_TH, const kernels::QkvLayout &layout)
{
    const Precision precision = precisionOf(dqkv);
    const float *cosine = cosine_TH.const_data_ptr<float>();
    const float *sine = sine_TH.const_data_ptr<float>();
    const float *rstd = saved.rstd.const_data_ptr<float>();
    const int64_t size = layout.headSize;
    const at::Tensor sums = at::zeros({2, size}, saved.rstd.options()); // of both weights, so that one pass has both
    if (dqkv.is_cuda()) {
        const at::Tensor scratch = at::empty({kernels::cuda::headNormRopeBackwardScratch(size)}, sums.options());
        float *qSums = sums.mutable_data_ptr<float>();
        kernels::cuda::headNormRopeBackward(precision, mutableDataOf(dqkv), qSums, qSums + size, viewOf(dq), viewOf(dk),
                                            viewOf(dv), dataOf(saved.qkv), rstd, dataOf(saved.qWeight_D),
                                            dataOf(saved.kWeight_D), cosine, sine, layout,
                                            scratch.mutable_data_ptr<float>(), currentStream());
    } else {
        sumInShares(layout.batch * layout.positions, sums, [&](int64_t begin, int64_t end, float *share) {
            kernels::cpu::headNormRopeBackward(precision, mutableDataOf(dqkv), share, share + size, viewOf(dq),
                                               viewOf(dk), viewOf(dv), dataOf(saved.qkv), rstd, dataOf(saved.qWeight_D),
                                               dataOf(saved.kWeight_D), cosine, sine, layout, begin, end - begin);
        });
    }
    addTo(qPlace, sums[0]);
    addTo(kPlace, sums[1]);
}

void swiglu(const at::Tensor &h_MF, const at::Tensor &gateUp_MF2)
{
    const int64_t rows = h_MF.size(0);
    const int64_t width = h_MF.size(1);
    if (h_MF.is_cuda()) {
        kernels::cuda::swigluForward(precisionOf(h_MF), mutableDataOf(h_MF), dataOf(gateUp_MF2), rows, width,
                                     currentStream());
        return;
    }
    at::parallel_for(0, rows, kRowGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::swigluForward(precisionOf(h_MF), mutableRowOf(h_MF, begin), rowOf(gateUp_MF2, begin), end - begin,
                                    width);
    });
}

void swigluBackward(const at::Tensor &dGateUp_MF2, const at::Tensor &h_MF, const at::Tensor &dh_MF,
                    const at::Tensor &gateUp_MF2)
{
    const int64_t rows = dh_MF.size(0);
    const int64_t width = dh_MF.size(1);
    if (dh_MF.is_cuda()) {
        kernels::cuda::swigluBackward(precisionOf(dh_MF), mutableDataOf(dGateUp_MF2), mutableDataOf(h_MF),
                                      dataOf(dh_MF), dataOf(gateUp_MF2), rows, width, currentStream());
        return;
    }
    at::parallel_for(0, rows, kRowGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::swigluBackward(precisionOf(dh_MF), mutableRowOf(dGateUp_MF2, begin), mutableRowOf(h_MF, begin),
                                     rowOf(dh_MF, begin), rowOf(gateUp_MF2, begin), end - begin, width);
    });
}

void crossEntropy(const at::Tensor &logits_MV, const at::Tensor &losses_M, const at::Tensor &targets_M, double scale,
                  const at::Tensor &gradientScale)
{
    const int64_t rows = logits_MV.size(0);
    const int64_t vocabulary = logits_MV.size(1);
    float *losses = losses_M.mutable_data_ptr<float>();
    const int64_t *targets = targets_M.const_data_ptr<int64_t>();
    auto factor = static_cast<float>(scale);
    const double *further = gradientScale.defined() ? gradientScale.const_data_ptr<double>() : nullptr;
    if (logits_MV.is_cuda()) {
        kernels::cuda::crossEntropy(precisionOf(logits_MV), mutableDataOf(logits_MV), losses, targets, rows, vocabulary,
                                    factor, currentStream(), further);
        return;
    }
    if (further)
        factor *= static_cast<float>(*further);
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
        kernels::cpu::crossEntropy(precisionOf(logits_MV), mutableRowOf(logits_MV, begin), losses + begin,
                                   targets + begin, end - begin, vocabulary, factor);
    });
}

void crossEntropyLoss(const at::Tensor &logits_MV, const at::Tensor &losses_M, const at::Tensor &targets_M)
{
    const int64_t rows = logits_MV.size(0);
    const int64_t vocabulary = logits_MV.size(1);
    float *losses = losses_M.mutable_data_ptr<float>();
    const int64_t *targets = targets_M.const_data_ptr<int64_t>();
    if (logits_MV.is_cuda()) {
        kernels::cuda::crossEntropyLoss(precisionOf(logits_MV), dataOf(logits_MV), losses, targets, rows, vocabulary,
                                        currentStream());
        return;
    }
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
        kernels::cpu::crossEntropyLoss(precisionOf(logits_MV), rowOf(logits_MV, begin), losses + begin, targets + begin,
                                       end - begin, vocabulary);
    });
}

void embedding(const at::Tensor &x_MC, const at::Tensor &weight_VC, const at::Tensor &tokens_M)
{
    at::Tensor out = x_MC;
    at::index_select_out(out, weight_VC, 0, tokens_M);
}

void embeddingBackward(const GradientPlace &place, const at::Tensor &dx_MC, const at::Tensor &tokens_M)
{
    at::Tensor grad_VC = place.grad;
    if (!grad_VC.defined())
        return; // frozen
    if (!place.accumulate)
        grad_VC.zero_();
    const Precision precision = precisionOf(dx_MC);
    const int64_t rows = dx_MC.size(0);
    const int64_t width = dx_MC.size(1);
    float *grad = grad_VC.mutable_data_ptr<float>();
    const int64_t *tokens = tokens_M.const_data_ptr<int64_t>();
    if (!dx_MC.is_cuda())
        kernels::cpu::embeddingBackward(precision, grad, dataOf(dx_MC), tokens, rows, width);
    else if (at::globalContext().deterministicAlgorithms())
        grad_VC.index_put_({tokens_M}, dx_MC.to(at::kFloat), true); // sorts, so the sums have an order
    else
        kernels::cuda::embeddingBackward(precision, grad, dataOf(dx_MC), tokens, rows, width, currentStream());
}

void linear(const at::Tensor &y_MO, const at::Tensor &x_MI, const at::Tensor &weight_OI, const at::Tensor &bias_O)
{
    at::Tensor out = y_MO;
    if (bias_O.defined())
        at::addmm_out(out, bias_O, x_MI, weight_OI.t());
    else
        at::mm_out(out, x_MI, weight_OI.t());
}

void biasBackward(const GradientPlace &place, const at::Tensor &dy_MO)
{
    TORCH_CHECK(dy_MO.stride(1) == 1, "a bias's gradient is summed over contiguous rows");
    at::Tensor grad_O = place.grad;
    if (!grad_O.defined())
        return; // frozen
    if (!place.accumulate)
        grad_O.zero_();
    const Precision precision = precisionOf(dy_MO);
    const int64_t rows = dy_MO.size(0);
    const int64_t width = dy_MO.size(1);
    const int64_t stride = dy_MO.stride(0);
    if (dy_MO.is_cuda()) {
        const at::Tensor scratch = at::empty({kernels::cuda::columnSumsScratch(width)}, grad_O.options());
        kernels::cuda::columnSums(precision, grad_O.mutable_data_ptr<float>(), dataOf(dy_MO), rows, width, stride,
                                  scratch.mutable_data_ptr<float>(), currentStream());
        return;
    }
    sumInShares(rows, grad_O, [&](int64_t begin, int64_t end, float *sums) {
        const char *first = static_cast<const char *>(dataOf(dy_MO)) + begin * stride * dy_MO.element_size();
        kernels::cpu::columnSums(precision, sums, first, end - begin, width, stride);
    });
}

void linearBackwardInput(const at::Tensor &dx_MI, const at::Tensor &dy_MO, const at::Tensor &weight_OI, bool accumulate)
{
    at::Tensor out = dx_MI;
    if (accumulate)
        at::addmm_out(out, out, dy_MO, weight_OI);
    else
        at::mm_out(out, dy_MO, weight_OI);
}

/// sum (fp32) += product. On the CPU at::add_() would turn the whole product to fp32 beside it first.
static void addProduct(const at::Tensor &sum, const at::Tensor &product)
{
    if (product.is_cuda()) {
        at::Tensor(sum).add_(product);
        return;
    }
    TORCH_CHECK(sum.is_contiguous() && product.is_contiguous(), "a weight's gradient is contiguous");
    static constexpr int64_t kGrain = 32768; // ATen's
    at::parallel_for(0, sum.numel(), kGrain, [&](int64_t begin, int64_t end) {
        const char *first = static_cast<const char *>(dataOf(product)) + begin * product.element_size();
        kernels::cpu::columnSums(precisionOf(product), sum.mutable_data_ptr<float>() + begin, first, 1, end - begin, 0);
    });
}

void linearBackwardWeight(const GradientPlace &place, const at::Tensor &dy_MO, const at::Tensor &x_MI)
{
    at::Tensor grad = place.grad;
    if (!grad.defined())
        return; // frozen
    const at::Tensor dy_OM = dy_MO.t();
    if (x_MI.scalar_type() == at::kFloat) {
        if (place.accumulate)
            at::addmm_out(grad, grad, dy_OM, x_MI);
        else
            at::mm_out(grad, dy_OM, x_MI);
    } else if (x_MI.is_cuda() && x_MI.scalar_type() == at::kBFloat16) {
        if (place.accumulate)
            at::addmm_out(grad, grad, dy_OM, x_MI, at::kFloat);
        else
            at::mm_out(grad, dy_OM, x_MI, at::kFloat);
    } else if (place.accumulate) {
        addProduct(grad, at::mm(dy_OM, x_MI));
    } else {
        grad.copy_(at::mm(dy_OM, x_MI));
    }
}

} // namespace shardscope::model::ops
