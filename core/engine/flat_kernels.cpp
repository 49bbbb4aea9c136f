// SPDX-License-Identifier: Apache-2.0
#include "core/engine/flat_kernels.h"

#include "core/engine/cast.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/cuda/CUDAStream.h>
#include <cmath>

namespace shardscope::engine {

namespace kernels = model::kernels;

/// Elements that one thread takes at least. Fixed, so that sums do not depend on the number of threads.
static constexpr int64_t kGrain = int64_t{1} << 16;

static void *currentStream()
{
    return c10::cuda::getCurrentCUDAStream().stream();
}

void copyInto(const at::Tensor &to, const at::Tensor &from)
{
    const bool fromFp32 = to.is_cpu() && from.scalar_type() == at::kFloat && to.is_contiguous() && from.is_contiguous();
    auto *out = static_cast<uint16_t *>(to.mutable_data_ptr());
    if (fromFp32 && to.scalar_type() == at::kBFloat16)
        castToBf16(out, from.const_data_ptr<float>(), to.numel());
    else if (fromFp32 && to.scalar_type() == at::kHalf)
        castToFp16(out, from.const_data_ptr<float>(), to.numel());
    else
        at::Tensor(to).copy_(from, true);
}

void addSquares(const at::Tensor &sum, const at::Tensor &values)
{
    const int64_t elements = values.numel();
    const float *data = values.const_data_ptr<float>();
    if (values.is_cuda()) {
        const at::Tensor scratch = at::empty({kernels::cuda::kSumScratch}, sum.options());
        kernels::cuda::sumOfSquares(sum.mutable_data_ptr<double>(), scratch.mutable_data_ptr<double>(), data, elements,
                                    currentStream());
        return;
    }
    std::vector<double> parts(static_cast<size_t>((elements + kGrain - 1) / kGrain));
    at::parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t count = std::min(kGrain, elements - i * kGrain);
            parts[static_cast<size_t>(i)] = kernels::cpu::sumOfSquares(data + i * kGrain, count);
        }
    });
    double total = 0;
    for (const double part : parts)
        total += part;
    *sum.mutable_data_ptr<double>() += total;
}

/// M: of the moments' elements.
template <typename M>
static void adamWOf(float *p, M *m, M *v, const at::Tensor &gradient, const float *scale,
                    const kernels::AdamWStep &step)
{
    const float *g = gradient.const_data_ptr<float>();
    if (gradient.is_cuda()) {
        kernels::cuda::adamW(p, m, v, g, scale, gradient.numel(), step, currentStream());
        return;
    }
    at::parallel_for(0, gradient.numel(), kGrain, [&](int64_t begin, int64_t end) {
        kernels::cpu::adamW(p + begin, m + begin, v + begin, g + begin, scale, end - begin, step);
    });
}

static uint16_t *bitsOf(const at::Tensor &bf16)
{
    return static_cast<uint16_t *>(bf16.mutable_data_ptr());
}

static const float *scalarOrNull(const at::Tensor &scale)
{
    return scale.defined() ? scale.const_data_ptr<float>() : nullptr;
}

void adamW(const at::Tensor &master, const at::Tensor &moment1, const at::Tensor &moment2, const at::Tensor &gradient,
           const at::Tensor &scale, const kernels::AdamWStep &step)
{
    float *p = master.mutable_data_ptr<float>();
    const float *s = scalarOrNull(scale);
    if (moment1.scalar_type() == at::kBFloat16)
        adamWOf(p, bitsOf(moment1), bitsOf(moment2), gradient, s, step);
    else
        adamWOf(p, moment1.mutable_data_ptr<float>(), moment2.mutable_data_ptr<float>(), gradient, s, step);
}

/// The constants of one update.
struct SgdStep
{
    double learningRate;
    double momentum;
    double weightDecay;
};

static void sgdOnDevice(const at::Tensor &master, const at::Tensor &moment, const at::Tensor &gradient,
                        const float *scale, const SgdStep &step)
{
    const auto run = [&](auto *m) {
        kernels::cuda::sgd(master.mutable_data_ptr<float>(), m, gradient.const_data_ptr<float>(), scale, master.numel(),
                           static_cast<float>(step.learningRate), static_cast<float>(step.momentum),
                           static_cast<float>(step.weightDecay), currentStream());
    };
    if (moment.defined() && moment.scalar_type() == at::kBFloat16)
        run(bitsOf(moment));
    else
        run(moment.defined() ? moment.mutable_data_ptr<float>() : nullptr);
}

void sgd(const at::Tensor &master, const at::Tensor &moment, const at::Tensor &gradient, const at::Tensor &scale,
         double learningRate, double momentum, double weightDecay)
{
    const float *s = scalarOrNull(scale);
    if (master.is_cuda())
        return sgdOnDevice(master, moment, gradient, s, {learningRate, momentum, weightDecay});
    if (s && std::isnan(*s))
        return;
    at::Tensor g = gradient;
    at::Tensor p = master;
    if (s)
        g.mul_(scale);
    if (weightDecay != 0)
        g.add_(p, weightDecay);
    if (moment.defined()) {
        // Moments begin at zero, so the first step gives m = g as torch.optim.SGD has it without dampening.
        at::Tensor m = moment.to(at::kFloat); // itself where it is fp32
        m.mul_(momentum).add_(g);
        p.add_(m, -learningRate);
        if (moment.scalar_type() != at::kFloat)
            at::Tensor(moment).copy_(m);
    } else {
        p.add_(g, -learningRate);
    }
}

} // namespace shardscope::engine
