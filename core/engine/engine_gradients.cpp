// SPDX-License-Identifier: Apache-2.0
#include "core/engine/communication_lane.h"
#include "core/engine/engine.h"
#include "core/engine/flat_kernels.h"

#include <ATen/ATen.h>
#include <utility>

namespace shardscope::engine {

using shapes::kReductionsInFlight;

/// The buffer that this pass's gradients are written to: the reduced one itself where there is nothing to scatter.
at::Tensor &Engine::gradientBuffer(Bucket &bucket)
{
    TORCH_CHECK(!bucket.replicating, bucket.layout.name, ": a pass follows the last of a step without its update");
    while (bucket.reducing) // of the micro-batch before
        drainReductions(m_reducing.size() - 1);
    at::Tensor &buffer = bucket.isSharded() ? bucket.unreduced_G : bucket.gradient_S;
    if (!bucket.isSharded())
        fetchGradient(bucket);
    if (!buffer.defined()) {
        if (bucket.isSharded())
            drainReductions(kReductionsInFlight);
        buffer = allocate(bucket.layout.paddedElements, fp32(), MemoryCategory::Gradients, bucket.index);
        clearPadding(bucket, buffer);
    }
    return buffer;
}

void Engine::clearPadding(const Bucket &bucket, const at::Tensor &buffer_G)
{
    const auto &places = bucket.layout.parameters;
    for (size_t i = 0; i < places.size(); ++i) {
        const int64_t begin = places[i].range().end;
        const int64_t end = i + 1 < places.size() ? places[i + 1].offset : bucket.layout.paddedElements;
        if (end > begin)
            buffer_G.narrow(0, begin, end - begin).zero_();
    }
}

Engine::GradientPlace Engine::fusedGradient(observe::UnitIndex index, size_t first, size_t count)
{
    Bucket &of = bucketOf(index, first);
    if (of.frozen)
        return {};
    const at::Tensor &buffer = gradientBuffer(of);
    const bool earlierPasses = of.isSharded() ? of.unreducedHolds : of.gradientHolds;
    const size_t firstPlace = unitAt(index).parameters[first].place;
    GradientPlace place;
    place.accumulate = earlierPasses || of.written[firstPlace];
    for (size_t i = firstPlace; i < firstPlace + count; ++i)
        of.written[i] = true;
    const ParameterPlace &start = placeOf(index, first);
    if (count == 1) {
        place.grad = buffer.narrow(0, start.offset, start.shape.elements()).view(start.shape.sizes);
    } else {
        const auto [rows, columns] = fusedSize(index, first, count);
        TORCH_CHECK(rows > 0, "the gradients of ", start.shape.name, " and its neighbours do not lie together");
        place.grad = buffer.narrow(0, start.offset, rows * columns).view({rows, columns});
    }
    return place;
}

at::Tensor Engine::writtenGradient(observe::UnitIndex index, size_t parameter) const
{
    const Bucket &of = bucketOf(index, parameter);
    const at::Tensor &buffer = of.isSharded() ? of.unreduced_G : of.gradient_S;
    if (!buffer.defined() || !of.written[unitAt(index).parameters[parameter].place])
        return {};
    const ParameterPlace &place = placeOf(index, parameter);
    return buffer.narrow(0, place.offset, place.shape.elements()).view(place.shape.sizes);
}

/// A parameter that this pass did not use has a gradient of zero; the buffer does not know that by itself.
void Engine::completeGradient(Bucket &bucket)
{
    const at::Tensor &buffer = gradientBuffer(bucket);
    const bool earlierPasses = bucket.isSharded() ? bucket.unreducedHolds : bucket.gradientHolds;
    for (size_t i = 0; i < bucket.written.size(); ++i) {
        const ElementRange range = bucket.layout.parameters[i].range();
        if (!bucket.written[i] && !earlierPasses)
            buffer.narrow(0, range.begin, range.size()).zero_();
    }
}

void Engine::reduce(observe::UnitIndex index)
{
    for (const size_t i : unitAt(index).buckets) {
        Bucket &bucket = m_buckets[i];
        if (m_lastMicroBatch && bucket.settings.strategy == Strategy::GradOp)
            freeGathered(bucket);
        if (!bucket.frozen)
            reduce(bucket);
    }
}

void Engine::reduce(Bucket &bucket)
{
    completeGradient(bucket);
    const CollectiveTag tag{bucket.index, Phase::Backward};
    const bool inBf16 = m_options.reduce == Precision::Bf16;
    Pending pending;
    if (bucket.isSharded()) {
        if (m_plan.pass.reduceEvery == ReduceEvery::Step && !m_lastMicroBatch) {
            bucket.unreducedHolds = true;
            return;
        }
        fetchGradient(bucket);
        if (!bucket.gradient_S.defined())
            bucket.gradient_S = allocate(bucket.held.size(), fp32(), MemoryCategory::Gradients, bucket.index);
        m_order.add(Operation::ReduceScatter, bucket.index);
        Communicator &shards = *bucket.groups.shard;
        pending = inBf16 ? shards.reduceScatterInBf16(bucket.unreduced_G, bucket.gradient_S, bucket.gradientHolds, tag)
                         : shards.reduceScatter(bucket.unreduced_G, bucket.gradient_S, bucket.gradientHolds, tag);
        bucket.unreducedHolds = false;
    }
    if (m_lastMicroBatch && bucket.groups.replica->worldSize() > 1) {
        // Gloo's sum needs a buffer of its own for as long as it waits. A stream's frees nothing that the pass waits
        // for; what was scattered before it is a unit old and is done with.
        const bool onlyForUpdate = device().is_cuda() && !bucket.handsGradientOn();
        if (!bucket.isSharded())
            drainReductions(onlyForUpdate ? 0 : kReductionsInFlight);
        m_order.add(Operation::AllReduce, bucket.index);
        Communicator &replicas = *bucket.groups.replica;
        // Summed anew is of no use where the sum within the group failed: whoever waits hears of that first, or of
        // both.
        Pending replicated = inBf16 ? replicas.allReduceInBf16(bucket.gradient_S, tag, pending)
                                    : replicas.allReduce(bucket.gradient_S, tag, pending);
        if (onlyForUpdate)
            bucket.replicating = std::move(replicated);
        else
            pending = both(std::move(pending), std::move(replicated));
    }
    bucket.gradientHolds = true;
    bucket.isLastReduction = m_lastMicroBatch;
    if (pending) {
        bucket.reducing = std::move(pending);
        m_reducing.push_back(&bucket);
    } else {
        completed(bucket);
    }
}

/// The current stream has the sum of this micro-batch and those before it.
void Engine::completed(Bucket &bucket)
{
    if (bucket.isLastReduction && m_expectedRate && bucket.hasOffloadedState()) {
        takeSquares(bucket);
        beginUpdate(bucket, updateRule(*m_expectedRate), {});
        bucket.isUpdated = true;
    } else if (bucket.settings.offloadGradients != OffloadPlace::None) {
        if (bucket.isLastReduction)
            takeSquares(bucket);
        sendGradient(bucket);
    }
}

/// Ahead of reduceScalars(), because the gradient is not at hand any more by then.
void Engine::takeSquares(Bucket &bucket)
{
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, bucket.index});
    bucket.squares = at::zeros({}, fp32().dtype(at::kDouble));
    addSquares(bucket.squares, bucket.ownedGradient());
}

void Engine::drainReductions(size_t keep)
{
    while (m_reducing.size() > keep) {
        Bucket &oldest = *m_reducing.front();
        m_reducing.pop_front();
        const observe::SpanScope span(m_observer, {"wait for reduction", SpanCategory::Idle, Phase::Backward,
                                                   oldest.index, 0, oldest.reducing.collective()});
        oldest.reducing.wait();
        oldest.reducing = {};
        oldest.unreduced_G.reset();
        completed(oldest);
    }
}

/// The current stream has the sums over all ranks.
void Engine::finishReductions()
{
    drainReductions(0);
    for (Bucket &bucket : m_buckets) {
        if (!bucket.replicating)
            continue;
        const observe::SpanScope span(m_observer, {"wait for reduction", SpanCategory::Idle, Phase::Backward,
                                                   bucket.index, 0, bucket.replicating.collective()});
        std::exchange(bucket.replicating, {}).wait();
    }
}

void Engine::freeGradient(Bucket &bucket)
{
    if (bucket.fetching) // a copy is still on its way into it
        std::exchange(bucket.fetching, {})();
    bucket.gradient_S.reset();
    bucket.squares.reset();
    bucket.gradientIsAway = bucket.gradientHolds = false;
}

void Engine::dropGradients()
{
    TORCH_CHECK(!m_expectedRate, "gradients are dropped of a step whose update was begun already");
    finishReductions();
    for (Bucket &bucket : m_buckets) {
        freeGradient(bucket);
        bucket.unreduced_G.reset();
        bucket.unreducedHolds = false;
    }
    if (m_gradientOffload)
        m_gradientOffload->drain(0);
}

} // namespace shardscope::engine
