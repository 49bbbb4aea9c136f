// SPDX-License-Identifier: Apache-2.0
// A step: what is summed over the ranks, and the update.
#include "core/engine/dtype.h"
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
    finishReductions();
    const observe::SpanScope span(m_observer, {"gradient norm", SpanCategory::Compute, Phase::Optimizer});
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, observe::kNoUnit});
    const at::Tensor scalars_K = at::zeros({StepScalars::kCount}, fp32().dtype(at::kDouble));
    const at::Tensor squares = scalars_K[StepScalars::kSquares];
    for (const Bucket &bucket : m_buckets) {
        if (bucket.squares.defined())
            at::Tensor(squares).add_(bucket.squares);
        else if (bucket.gradient_S.defined())
            addSquares(squares, bucket.ownedGradient());
    }
    if (lossSum.defined())
        scalars_K[StepScalars::kLoss].copy_(lossSum);
    const double order = m_order.digest();
    scalars_K[StepScalars::kOrder].fill_(order);
    for (size_t i = 0; i < words.size(); ++i) {
        if (words[i] != 0)
            scalars_K[StepScalars::kFirstWord + static_cast<int64_t>(i)].fill_(words[i]);
    }
    const Pending sums = m_communicator.allReduce(scalars_K.narrow(0, 0, StepScalars::kSummed), kScalarsTag);
    {
        const observe::SpanScope wait(m_observer, {"wait for sums", SpanCategory::Idle, Phase::Optimizer,
                                                   observe::kNoUnit, 0, sums.collective()});
        sums.wait();
    }
    if (m_scaler)
        scalars_K[StepScalars::kScale].copy_(m_scaler->scale());
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
    const at::ScalarType type = scalarTypeOf(m_options.moments);
    for (Bucket &bucket : m_buckets) {
        if (bucket.frozen)
            continue;
        const auto make = [&](StateMemory &moment) {
            if (!moment.defined())
                moment = m_places.make(bucket.settings.offloadOptimizer, bucket.held.size(), type,
                                       {MemoryCategory::Optimizer, bucket.index}, "offloaded optimizer states");
        };
        if (isAdam || m_options.momentum != 0)
            make(bucket.moment1);
        if (isAdam)
            make(bucket.moment2);
    }
}

void Engine::expectUpdate(double learningRate)
{
    TORCH_CHECK(!m_scaler, "whether an fp16 step is made is known only once its gradient is");
    ensureMoments();
    countLastStep();
    m_expectedRate = learningRate;
}

void Engine::optimizerStep(double learningRate, double clipNorm, const StepScalars &scalars)
{
    const at::NoGradGuard noGrad;
    finishReductions();
    ensureMoments();
    TORCH_CHECK(!m_expectedRate || (clipNorm == 0 && *m_expectedRate == learningRate),
                "another update was expected than is made");
    countLastStep();
    const UpdateRule rule = updateRule(learningRate);
    if (m_expectedRate) // it was begun whatever its gradient is
        ++m_optimizerSteps;
    else
        m_uncounted = scalars.withoutDevice();
    m_expectedRate.reset();
    const StepFactor factor = stepFactor(scalars, clipNorm);
    std::vector<Bucket *> here;
    for (Bucket &bucket : m_buckets) {
        if (!bucket.hasGradient() || bucket.isUpdated)
            continue;
        if (bucket.hasOffloadedState())
            beginUpdate(bucket, rule, factor);
        else
            here.push_back(&bucket);
    }
    for (size_t i = 0; i < here.size(); ++i) {
        Bucket &bucket = *here[i];
        fetchGradient(bucket);
        if (i + 1 < here.size()) // the next one's comes while this one is updated
            beginFetch(*here[i + 1]);
        const observe::SpanScope span(m_observer, {"optimizer", SpanCategory::Compute, Phase::Optimizer, bucket.index});
        const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, bucket.index});
        updateBucket(bucket, rule, factor);
        freeGradient(bucket);
        refreshCopies(bucket);
    }
    for (Bucket &bucket : m_buckets) {
        bucket.isUpdated = false;
        bucket.squares.reset();
    }
    if (m_gradientOffload)
        m_gradientOffload->drain(0);
    if (device().is_cpu())
        countLastStep();
    m_observer.sampleMemory();
}

StepFactor Engine::stepFactor(const StepScalars &scalars, double clipNorm)
{
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, observe::kNoUnit});
    return StepFactor(scalars, clipNorm, m_scaler ? &*m_scaler : nullptr);
}

/// A step that was skipped is none for the bias correction. The device has left the last step's sums behind long before
/// the next update is enqueued, so that this waits for nothing that is still to be computed.
void Engine::countLastStep()
{
    if (!m_uncounted)
        return;
    const bool isMade = m_uncounted->host().isFinite();
    m_uncounted.reset();
    m_optimizerSteps += isMade ? 1 : 0;
}

int64_t Engine::optimizerSteps()
{
    countLastStep();
    return m_optimizerSteps;
}

/// Of the update after m_optimizerSteps others.
UpdateRule Engine::updateRule(double learningRate) const
{
    const auto step = static_cast<double>(m_optimizerSteps + 1);
    UpdateRule rule;
    rule.kind = m_options.optimizer;
    rule.learningRate = learningRate;
    rule.momentum = m_options.momentum;
    rule.weightDecay = m_options.weightDecay;
    rule.adamW.learningRate = static_cast<float>(learningRate);
    rule.adamW.beta1 = static_cast<float>(m_options.beta1);
    rule.adamW.beta2 = static_cast<float>(m_options.beta2);
    rule.adamW.eps = static_cast<float>(m_options.eps);
    rule.adamW.weightDecay = static_cast<float>(m_options.weightDecay);
    rule.adamW.biasCorrection1 = static_cast<float>(1.0 - std::pow(m_options.beta1, step));
    rule.adamW.biasCorrection2 = static_cast<float>(1.0 - std::pow(m_options.beta2, step));
    return rule;
}

void Engine::updateBucket(Bucket &bucket, const UpdateRule &rule, const StepFactor &factor)
{
    const auto of = [](const StateMemory &state) { return state.defined() ? state.tensor() : at::Tensor(); };
    updateParts({of(bucket.master), of(bucket.moment1), of(bucket.moment2), bucket.gradient_S}, bucket.held,
                bucket.decay, rule, factor.tensor());
}

} // namespace shardscope::engine
