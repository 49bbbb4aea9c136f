// SPDX-License-Identifier: Apache-2.0
// The passes of a decoder that only move memory, each fused into one. Raw pointers, no LibTorch: these files compile in
// seconds. `data` tensors are of the compute precision (bf16, fp16 or fp32), rows are contiguous; statistics, sums and
// optimizer state are fp32. Norm weights are of the compute precision, their gradients fp32 and added to what is there.
//
// cuda:: enqueues on a stream and returns; cpu:: computes at once on the calling thread, so the caller splits the rows.
#pragma once

#include "core/base/names.h"

#include <cstdint>

namespace shardscope::model::kernels {

/// One operand of attention as [batch, head, position, headSize] with these strides (elements); headSize is contiguous.
struct HeadsView
{
    const void *data = nullptr;
    int64_t batchStride = 0;
    int64_t headStride = 0;
    int64_t positionStride = 0;
};

/// Layout of a packed qkv row: heads of q, then of k, then of v, each headSize elements.
struct QkvLayout
{
    int64_t batch = 0;
    int64_t positions = 0;
    int64_t heads = 0;
    int64_t keyValueHeads = 0;
    int64_t headSize = 0; ///< even
    constexpr int64_t rowElements() const { return (heads + 2 * keyValueHeads) * headSize; }
};

/// Largest head that headNormRopeForward() and headNormRopeBackward() take.
inline constexpr int64_t kMaxNormedHead = 512;

/// AdamW with decoupled weight decay (Loshchilov and Hutter 2019, as torch.optim.AdamW): the constants of one step.
struct AdamWStep
{
    float learningRate = 0;
    float beta1 = 0.9F;
    float beta2 = 0.999F;
    float eps = 1e-8F;
    float weightDecay = 0;
    float biasCorrection1 = 1; ///< 1 − beta1^step
    float biasCorrection2 = 1; ///< 1 − beta2^step
};

/// torch.amp.GradScaler's rule, and where its state lies in an array of fp64. A scale is rounded to fp32, as there.
struct ScalerRule
{
    static constexpr int64_t kScale = 0;
    static constexpr int64_t kGrowthTracker = 1; ///< steps without overflow since the scale last changed
    static constexpr int64_t kSkippedSteps = 2;
    static constexpr int64_t kCount = 3;
    double growthFactor = 2;
    double backoff = 0.5;
    int64_t growthInterval = 2000;
    double floor = 1; ///< no scale below
};

namespace cuda {

using Stream = void *; ///< a cudaStream_t

/// sum = x + residual (skipped where residual is null: sum may then be null); y = sum · rstd · weight,
/// rstd[row] = 1/√(mean(sum²) + eps).
void rmsNormForward(Precision precision, void *y, float *rstd, void *sum, const void *x, const void *residual,
                    const void *weight, int64_t rows, int64_t width, float eps, Stream stream);
/// Floats of scratch that rmsNormBackward() needs.
int64_t rmsNormBackwardScratch(int64_t width);
/// Widest row that rmsNormBackward() takes.
inline constexpr int64_t kMaxNormWidth = 8192;
/// dx = addend + d(norm)/dx · dy (addend may be null, or dx itself); dWeight += Σ_rows dy · x · rstd. Same sums every
/// time.
void rmsNormBackward(Precision precision, void *dx, float *dWeight, const void *dy, const void *x, const void *weight,
                     const float *rstd, const void *addend, float *scratch, int64_t rows, int64_t width, Stream stream);

/// Rotates the q and k heads of packed rows in place. cosine and sine: [positions, headSize/2], fp32; half-split
/// layout.
void ropeForward(Precision precision, void *qkv, const float *cosine, const float *sine, const QkvLayout &layout,
                 Stream stream);
/// Writes the gradient of packed rows from those of attention's operands: q and k rotated back, v copied.
void ropeBackward(Precision precision, void *dQkv, const HeadsView &dQ, const HeadsView &dK, const HeadsView &dV,
                  const float *cosine, const float *sine, const QkvLayout &layout, Stream stream);

/// Norms of each head of q and k, then their rotation (Qwen3): qk [rows, (heads + keyValueHeads) · headSize] from the
/// packed rows qkv, which stay. A weight has headSize elements; rstd is [rows, heads + keyValueHeads].
void headNormRopeForward(Precision precision, void *qk, float *rstd, const void *qkv, const void *qWeight,
                         const void *kWeight, const float *cosine, const float *sine, const QkvLayout &layout,
                         float eps, Stream stream);
/// Floats of scratch that headNormRopeBackward() needs.
int64_t headNormRopeBackwardScratch(int64_t headSize);
/// The gradient of the packed rows qkv from those of attention's operands (v's is copied); dQWeight += Σ over rows and
/// heads, dKWeight likewise. Same sums every time.
void headNormRopeBackward(Precision precision, void *dQkv, float *dQWeight, float *dKWeight, const HeadsView &dQ,
                          const HeadsView &dK, const HeadsView &dV, const void *qkv, const float *rstd,
                          const void *qWeight, const void *kWeight, const float *cosine, const float *sine,
                          const QkvLayout &layout, float *scratch, Stream stream);

/// h = silu(gate) · up; gateUp is [rows, 2 · width]: gate, then up.
void swigluForward(Precision precision, void *h, const void *gateUp, int64_t rows, int64_t width, Stream stream);
/// dGateUp from dh; h receives the forward's output again. dGateUp may be gateUp itself, and h may be dh.
void swigluBackward(Precision precision, void *dGateUp, void *h, const void *dh, const void *gateUp, int64_t rows,
                    int64_t width, Stream stream);

/// In place: logits become (softmax − onehot(target)) · scale; losses[row] = −log softmax[target], unscaled. A negative
/// target is not counted: its loss and its row of gradients are 0. gradientScale (a device scalar, may be null)
/// multiplies scale.
void crossEntropy(Precision precision, void *logits, float *losses, const int64_t *targets, int64_t rows,
                  int64_t vocabulary, float scale, Stream stream, const double *gradientScale = nullptr);
/// losses alone; logits are left as they are.
void crossEntropyLoss(Precision precision, const void *logits, float *losses, const int64_t *targets, int64_t rows,
                      int64_t vocabulary, Stream stream);

/// Floats of scratch that columnSums() needs.
int64_t columnSumsScratch(int64_t width);
/// sums[column] += Σ_rows x[row · rowStride + column], in fp32: a bias's gradient. Same sums every time.
void columnSums(Precision precision, float *sums, const void *x, int64_t rows, int64_t width, int64_t rowStride,
                float *scratch, Stream stream);

/// dWeight[tokens[row]] += dx[row], by atomic additions: the order, and so the last bit, differs from run to run.
void embeddingBackward(Precision precision, float *dWeight, const void *dx, const int64_t *tokens, int64_t rows,
                       int64_t width, Stream stream);

/// What a step's gradients are multiplied by before its update: sums has the squares of all gradients and the loss.
/// *factor = min(1, clipNorm ÷ (norm + 1e-6)) ÷ scale (torch.nn.utils.clip_grad_norm_; clipNorm 0: no clipping), and
/// NaN where a sum is not finite. scaler: the state after ScalerRule, whose scale the gradients have; it goes on to the
/// next step's. Null: there is none.
void stepFactor(float *factor, const double *sums, double clipNorm, double *scaler, const ScalerRule &rule,
                Stream stream);

/// One fused pass. gradientScale (a device scalar, may be null) multiplies each gradient first: stepFactor()'s. Where
/// it is NaN, nothing changes.
void adamW(float *master, float *firstMoment, float *secondMoment, const float *gradient, const float *gradientScale,
           int64_t elements, const AdamWStep &step, Stream stream);
/// Moments in bf16 (their bits): computed in fp32 as above, and rounded where they are kept.
void adamW(float *master, uint16_t *firstMoment, uint16_t *secondMoment, const float *gradient,
           const float *gradientScale, int64_t elements, const AdamWStep &step, Stream stream);
/// *sum += Σ values², in fp64. scratch: kSumScratch doubles. Same sum every time.
inline constexpr int64_t kSumScratch = 528;
/// One update of torch.optim.SGD, to the bit of LibTorch's operators: g = scale·g + weightDecay·p; m = momentum·m + g;
/// p −= learningRate·m, and −= learningRate·g where firstMoment is null. gradientScale as adamW()'s.
void sgd(float *master, float *firstMoment, const float *gradient, const float *gradientScale, int64_t elements,
         float learningRate, float momentum, float weightDecay, Stream stream);
void sgd(float *master, uint16_t *firstMoment, const float *gradient, const float *gradientScale, int64_t elements,
         float learningRate, float momentum, float weightDecay, Stream stream);
/// sum[i] = (accumulate ? sum[i] : 0) + parts[0][i] + parts[1][i] + …, in that order; `count` parts of bf16 one after
/// the other, `elements` each.
void sumParts(float *sum, const uint16_t *parts, int64_t count, int64_t elements, bool accumulate, Stream stream);
void sumOfSquares(double *sum, double *scratch, const float *values, int64_t elements, Stream stream);

} // namespace cuda

namespace cpu {

void rmsNormForward(Precision precision, void *y, float *rstd, void *sum, const void *x, const void *residual,
                    const void *weight, int64_t rows, int64_t width, float eps);
/// As cuda's; threads that share rows of one norm each bring a dWeight of their own.
void rmsNormBackward(Precision precision, void *dx, float *dWeight, const void *dy, const void *x, const void *weight,
                     const float *rstd, const void *addend, int64_t rows, int64_t width);
/// Rows firstRow … firstRow + rows of the packed tensor (a row is a position of a batch entry).
void ropeForward(Precision precision, void *qkv, const float *cosine, const float *sine, const QkvLayout &layout,
                 int64_t firstRow, int64_t rows);
void ropeBackward(Precision precision, void *dQkv, const HeadsView &dQ, const HeadsView &dK, const HeadsView &dV,
                  const float *cosine, const float *sine, const QkvLayout &layout, int64_t firstRow, int64_t rows);
/// Rows firstRow … firstRow + rows, as above; threads that share rows each bring dQWeight and dKWeight of their own.
void headNormRopeForward(Precision precision, void *qk, float *rstd, const void *qkv, const void *qWeight,
                         const void *kWeight, const float *cosine, const float *sine, const QkvLayout &layout,
                         float eps, int64_t firstRow, int64_t rows);
void headNormRopeBackward(Precision precision, void *dQkv, float *dQWeight, float *dKWeight, const HeadsView &dQ,
                          const HeadsView &dK, const HeadsView &dV, const void *qkv, const float *rstd,
                          const void *qWeight, const void *kWeight, const float *cosine, const float *sine,
                          const QkvLayout &layout, int64_t firstRow, int64_t rows);
/// x is the first of the rows; threads that share them each bring sums of their own.
void columnSums(Precision precision, float *sums, const void *x, int64_t rows, int64_t width, int64_t rowStride);
void swigluForward(Precision precision, void *h, const void *gateUp, int64_t rows, int64_t width);
void swigluBackward(Precision precision, void *dGateUp, void *h, const void *dh, const void *gateUp, int64_t rows,
                    int64_t width);
void crossEntropy(Precision precision, void *logits, float *losses, const int64_t *targets, int64_t rows,
                  int64_t vocabulary, float scale);
void crossEntropyLoss(Precision precision, const void *logits, float *losses, const int64_t *targets, int64_t rows,
                      int64_t vocabulary);
/// One thread for the whole: rows of one token meet.
void embeddingBackward(Precision precision, float *dWeight, const void *dx, const int64_t *tokens, int64_t rows,
                       int64_t width);
void adamW(float *master, float *firstMoment, float *secondMoment, const float *gradient, const float *gradientScale,
           int64_t elements, const AdamWStep &step);
void adamW(float *master, uint16_t *firstMoment, uint16_t *secondMoment, const float *gradient,
           const float *gradientScale, int64_t elements, const AdamWStep &step);
double sumOfSquares(const float *values, int64_t elements);

} // namespace cpu

} // namespace shardscope::model::kernels
