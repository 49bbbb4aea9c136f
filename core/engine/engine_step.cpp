// SPDX-License-Identifier: Apache-2.0
// A step: what is summed over the ranks, and the update.
#include "core/engine/engine.h"
#include "core/engine/flat_kernels.h"

#include <ATen/ATen.h>
#include <cmath>

namespace shardscope::engine {

static constexpr CollectiveTag kScalarsTag{observe::kNoUnit, Phase::Optimizer};

StepScalars Engine::reduceScalars(const at::Tensor &lossSum, std::span<const double> words)
{
    const at::NoGradGuard noGrad;
    TORCH_CHECK(words.size() <= StepScalars::kWords, "at most ", StepScalars::kWords, " words ride on a step");
    drainReductions(0);
    const observe::SpanScope span(m_observer, {"gradient norm", SpanCategory::Compute, Phase::Optimizer});
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, observe::kNoUnit});
    const at::Tensor scalars_K = at::zeros({StepScalars::kCount}, fp32().dtype(at::kDouble));
    const at::Tensor squares = scalars_K[StepScalars::kSquares];
    for (const Bucket &bucket : m_buckets) {
        if (!bucket.gradient_S.defined())
            continue;
        // Replicas are counted once: each rank takes what it owns under every strategy.
        addSquares(squares, bucket.gradient_S.narrow(0, bucket.owned.begin - bucket.held.begin, bucket.owned.size()));
    }
    if (lossSum.defined())
        scalars_K[StepScalars::kLoss].copy_(lossSum);
    const double order = m_order.digest();
    scalars_K[StepScalars::kOrder].fill_(order);
    for (size_t i = 0; i < words.size(); ++i) {
        if (words[i] != 0)
            scalars_K[StepScalars::kFirstWord + static_cast<int64_t>(i)].fill_(words[i]);
    }
    const Pending sums = m_communicator.allReduce(scalars_K, kScalarsTag);
    {
        const observe::SpanScope wait(m_observer, {"wait for sums", SpanCategory::Idle, Phase::Optimizer,
                                                   observe::kNoUnit, 0, sums.collective()});
        sums.wait();
    }
    return StepScalars(scalars_K, order * m_communicator.worldSize());
}

std::vector<double> Engine::sumOverRanks(std::span<const double> values)
{
    const at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
    std::ranges::copy(values, host.mutable_data_ptr<double>());
    const at::Tensor sums = host.to(device());
    m_communicator.allReduce(sums, {observe::kNoUnit, Phase::Validate}).wait();
    const at::Tensor result = sums.cpu();
    const double *data = result.const_data_ptr<double>();
    return {data, data + values.size()};
}

void Engine::ensureMoments()
{
    const bool isAdam = m_options.optimizer == OptimizerKind::AdamW;
    for (Bucket &bucket : m_buckets) {
        if (bucket.frozen)
            continue;
        if (!bucket.moment1_S.defined() && (isAdam || m_options.momentum != 0))
            bucket.moment1_S = allocate(bucket.held.size(), fp32(), MemoryCategory::Optimizer, bucket.index, true);
        if (!bucket.moment2_S.defined() && isAdam)
            bucket.moment2_S = allocate(bucket.held.size(), fp32(), MemoryCategory::Optimizer, bucket.index, true);
    }
}

void Engine::optimizerStep(double learningRate, double clipNorm, const StepScalars &scalars)
{
    const at::NoGradGuard noGrad;
    drainReductions(0);
    ensureMoments();
    ++m_optimizerSteps;
    const at::Tensor clip = clipNorm > 0 ? scalars.clipCoefficient(clipNorm) : at::Tensor();
    for (Bucket &bucket : m_buckets) {
        if (!bucket.gradient_S.defined())
            continue;
        const observe::SpanScope span(m_observer, {"optimizer", SpanCategory::Compute, Phase::Optimizer, bucket.index});
        const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, bucket.index});
        updateBucket(bucket, learningRate, clip);
        bucket.gradient_S.reset();
        bucket.gradientHolds = false;
        refreshResident(bucket);
    }
    m_observer.sampleMemory();
}

void Engine::updateBucket(Bucket &bucket, double learningRate, const at::Tensor &clip)
{
    const double step = static_cast<double>(m_optimizerSteps);
    for (const DecayRange &decay : bucket.decay) {
        const ElementRange range = intersect(decay.range, bucket.held);
        if (range.size() == 0)
            continue;
        const auto part = [&](const at::Tensor &of) {
            return of.defined() ? of.narrow(0, range.begin - bucket.held.begin, range.size()) : of;
        };
        const double weightDecay = decay.decays ? m_options.weightDecay : 0.0;
        if (m_options.optimizer == OptimizerKind::Sgd) {
            sgd(part(bucket.master_S), part(bucket.moment1_S), part(bucket.gradient_S), clip, learningRate,
                m_options.momentum, weightDecay);
            continue;
        }
        model::kernels::AdamWStep constants;
        constants.learningRate = static_cast<float>(learningRate);
        constants.beta1 = static_cast<float>(m_options.beta1);
        constants.beta2 = static_cast<float>(m_options.beta2);
        constants.eps = static_cast<float>(m_options.eps);
        constants.weightDecay = static_cast<float>(weightDecay);
        constants.biasCorrection1 = static_cast<float>(1.0 - std::pow(m_options.beta1, step));
        constants.biasCorrection2 = static_cast<float>(1.0 - std::pow(m_options.beta2, step));
        adamW(part(bucket.master_S), part(bucket.moment1_S), part(bucket.moment2_S), part(bucket.gradient_S), clip,
              constants);
    }
}

} // namespace shardscope::engine
