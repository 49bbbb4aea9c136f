// SPDX-License-Identifier: Apache-2.0
#include "core/model/kernels/cuda_types.cuh"
#include "core/model/kernels/step_factor.h"

namespace shardscope::model::kernels::cuda {

namespace {

__global__ void stepFactorKernel(float *factor, const double *sums, double clipNorm, double *scaler, ScalerRule rule)
{
    *factor = decideStep(sums, clipNorm, scaler, rule);
}

/// Each operation is rounded as LibTorch's operators round it: a product and a sum in one where `alpha` is theirs.
template <typename M>
__global__ void sgdKernel(float *master, M *moment, const float *gradient, const float *gradientScale, int64_t elements,
                          float learningRate, float momentum, float weightDecay)
{
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const float scale = gradientScale ? *gradientScale : 1.0F;
    if (i >= elements || isnan(scale))
        return;
    float step = __fmul_rn(gradient[i], scale);
    if (weightDecay != 0.0F)
        step = fmaf(weightDecay, master[i], step);
    if (moment) {
        step = __fadd_rn(__fmul_rn(toFloat(moment[i]), momentum), step);
        moment[i] = fromFloat<M>(step);
    }
    master[i] = fmaf(-learningRate, step, master[i]);
}

__global__ void sumPartsKernel(float *sum, const __nv_bfloat16 *parts, int64_t count, int64_t elements, bool accumulate)
{
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= elements)
        return;
    float total = accumulate ? sum[i] : 0.0F;
    for (int64_t part = 0; part < count; ++part)
        total += toFloat(parts[part * elements + i]);
    sum[i] = total;
}

template <typename M>
void launchSgd(float *master, M *firstMoment, const float *gradient, const float *gradientScale, int64_t elements,
               float learningRate, float momentum, float weightDecay, Stream stream)
{
    if (elements == 0)
        return;
    sgdKernel<<<blocksFor(elements), kThreads, 0, on(stream)>>>(master, firstMoment, gradient, gradientScale, elements,
                                                                learningRate, momentum, weightDecay);
    check("sgd");
}

} // namespace

void stepFactor(float *factor, const double *sums, double clipNorm, double *scaler, const ScalerRule &rule,
                Stream stream)
{
    stepFactorKernel<<<1, 1, 0, on(stream)>>>(factor, sums, clipNorm, scaler, rule);
    check("stepFactor");
}

void sgd(float *master, float *firstMoment, const float *gradient, const float *gradientScale, int64_t elements,
         float learningRate, float momentum, float weightDecay, Stream stream)
{
    launchSgd(master, firstMoment, gradient, gradientScale, elements, learningRate, momentum, weightDecay, stream);
}

void sgd(float *master, uint16_t *firstMoment, const float *gradient, const float *gradientScale, int64_t elements,
         float learningRate, float momentum, float weightDecay, Stream stream)
{
    launchSgd(master, reinterpret_cast<__nv_bfloat16 *>(firstMoment), gradient, gradientScale, elements, learningRate,
              momentum, weightDecay, stream);
}

void sumParts(float *sum, const uint16_t *parts, int64_t count, int64_t elements, bool accumulate, Stream stream)
{
    if (elements == 0)
        return;
    sumPartsKernel<<<blocksFor(elements), kThreads, 0, on(stream)>>>(
        sum, reinterpret_cast<const __nv_bfloat16 *>(parts), count, elements, accumulate);
    check("sumParts");
}

} // namespace shardscope::model::kernels::cuda
