// SPDX-License-Identifier: Apache-2.0
// A pass: gathers, gradients and their reductions.
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <numeric>

namespace shardscope::engine {

/// Reductions that may be in flight while the next unit's backward writes its gradient: each holds 4 bytes a parameter.
static constexpr size_t kReductionsInFlight = 1;

void Engine::beginPass(PassKind kind, bool lastMicroBatch)
{
    m_pass = kind;
    m_lastMicroBatch = lastMicroBatch;
    for (const auto &unit : m_units)
        unit->written.assign(unit->layout.parameters.size(), false);
}

/// False where no slot is free.
bool Engine::startGather(ShardedUnit &unit, Phase phase)
{
    if (unit.gathered_G.defined())
        return true;
    const bool isWhole = unit.held.size() == unit.layout.paddedElements;
    if (unit.resident_G.defined() || (isWhole && computeType() == at::kFloat)) {
        unit.gathered_G = unit.resident_G.defined() ? unit.resident_G : unit.master_S;
        return true;
    }
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Gathered, unit.index});
    const at::TensorOptions options = fp32().dtype(computeType());
    const bool usesSlot = m_options.strategy == Strategy::Full || m_pass == PassKind::Evaluate;
    if (usesSlot) {
        unit.slot = m_slots.take(unit.slotElements, unit.slotLimit, options);
        if (!unit.slot.defined())
            return false;
        unit.gathered_G = unit.slot.narrow(0, 0, unit.layout.paddedElements);
    } else {
        unit.gathered_G = at::empty({unit.layout.paddedElements}, options);
    }
    unit.gathering = m_communicator.allGather(unit.gathered_G, unit.master_S, {unit.index, phase});
    return true;
}

void Engine::acquire(observe::UnitIndex index, Phase phase, std::initializer_list<observe::UnitIndex> next)
{
    ShardedUnit &wanted = unit(index);
    TORCH_CHECK(startGather(wanted, phase), "no free slot to gather ", wanted.layout.name,
                ": a unit was acquired and not released");
    const bool ahead = phase == Phase::Backward ? m_options.prefetch : m_options.forwardPrefetch;
    for (const observe::UnitIndex one : next) {
        if (ahead)
            startGather(unit(one), phase);
    }
    if (wanted.gathering) {
        const observe::SpanScope span(
            m_observer, {"wait for parameters", SpanCategory::Idle, phase, index, 0, wanted.gathering.collective()});
        wanted.gathering.wait();
        wanted.gathering = {};
    }
}

void Engine::freeGathered(ShardedUnit &unit)
{
    if (unit.gathering) {
        unit.gathering.wait();
        unit.gathering = {};
    }
    unit.gathered_G.reset();
    if (unit.slot.defined())
        m_slots.giveBack(std::move(unit.slot));
    unit.slot = at::Tensor();
}

void Engine::release(observe::UnitIndex index, bool needAgain)
{
    ShardedUnit &used = unit(index);
    const bool keepsToEnd = m_pass == PassKind::Train && m_options.strategy != Strategy::Full;
    if (!needAgain && !keepsToEnd)
        freeGathered(used);
}

at::Tensor Engine::parameter(observe::UnitIndex index, size_t parameterIndex) const
{
    const ShardedUnit &from = unit(index);
    TORCH_CHECK(from.gathered_G.defined(), from.layout.name, " is used while its parameters are not gathered");
    const ParameterPlace &place = from.layout.parameters[parameterIndex];
    return from.gathered_G.narrow(0, place.offset, place.shape.elements()).view(place.shape.sizes);
}

/// Rows and columns of neighbouring matrices taken as one; rows 0 where there is a gap or the columns differ.
static std::pair<int64_t, int64_t> fusedSize(const BucketLayout &layout, size_t first, size_t count)
{
    int64_t rows = 0;
    const int64_t columns = layout.parameters[first].shape.sizes.back();
    int64_t end = layout.parameters[first].offset;
    for (size_t i = first; i < first + count; ++i) {
        const ParameterPlace &place = layout.parameters[i];
        if (place.offset != end || place.shape.sizes.size() != 2 || place.shape.sizes[1] != columns)
            return {0, 0};
        rows += place.shape.sizes[0];
        end = place.range().end;
    }
    return {rows, columns};
}

at::Tensor Engine::fusedParameter(observe::UnitIndex index, size_t first, size_t count) const
{
    const ShardedUnit &from = unit(index);
    TORCH_CHECK(from.gathered_G.defined(), from.layout.name, " is used while its parameters are not gathered");
    const auto [rows, columns] = fusedSize(from.layout, first, count);
    if (rows == 0)
        return {};
    return from.gathered_G.narrow(0, from.layout.parameters[first].offset, rows * columns).view({rows, columns});
}

/// The buffer that this pass's gradients are written to: the reduced one itself where there is nothing to scatter.
at::Tensor &Engine::gradientBuffer(ShardedUnit &unit)
{
    while (unit.reducing) // of the micro-batch before
        drainReductions(m_reducing.size() - 1);
    at::Tensor &buffer = isSharded() ? unit.unreduced_G : unit.gradient_S;
    if (!buffer.defined()) {
        if (isSharded())
            drainReductions(kReductionsInFlight);
        buffer = allocate(unit.layout.paddedElements, fp32(), MemoryCategory::Gradients, unit.index);
        clearPadding(unit, buffer);
    }
    return buffer;
}

void Engine::clearPadding(const ShardedUnit &unit, const at::Tensor &buffer_G)
{
    const auto &places = unit.layout.parameters;
    for (size_t i = 0; i < places.size(); ++i) {
        const int64_t begin = places[i].range().end;
        const int64_t end = i + 1 < places.size() ? places[i + 1].offset : unit.layout.paddedElements;
        if (end > begin)
            buffer_G.narrow(0, begin, end - begin).zero_();
    }
}

Engine::GradientPlace Engine::fusedGradient(observe::UnitIndex index, size_t first, size_t count)
{
    ShardedUnit &of = unit(index);
    const at::Tensor &buffer = gradientBuffer(of);
    const bool earlierPasses = !isSharded() && of.gradientHolds;
    GradientPlace place;
    place.accumulate = earlierPasses || of.written[first];
    for (size_t i = first; i < first + count; ++i)
        of.written[i] = true;
    const ParameterPlace &start = of.layout.parameters[first];
    if (count == 1) {
        place.grad = buffer.narrow(0, start.offset, start.shape.elements()).view(start.shape.sizes);
    } else {
        const auto [rows, columns] = fusedSize(of.layout, first, count);
        TORCH_CHECK(rows > 0, "the gradients of ", start.shape.name, " and its neighbours do not lie together");
        place.grad = buffer.narrow(0, start.offset, rows * columns).view({rows, columns});
    }
    return place;
}

void Engine::reduce(observe::UnitIndex index)
{
    ShardedUnit &done = unit(index);
    // A parameter that this pass did not use has a gradient of zero; the buffer does not know that by itself.
    for (size_t i = 0; i < done.written.size(); ++i) {
        if (!done.written[i]) {
            const GradientPlace place = gradient(index, i);
            if (!place.accumulate)
                place.grad.zero_();
        }
    }
    if (m_lastMicroBatch && m_options.strategy == Strategy::GradOp)
        freeGathered(done);
    const CollectiveTag tag{index, Phase::Backward};
    if (isSharded()) {
        if (!done.gradient_S.defined())
            done.gradient_S = allocate(done.held.size(), fp32(), MemoryCategory::Gradients, index);
        done.reducing = m_communicator.reduceScatter(done.unreduced_G, done.gradient_S, done.gradientHolds, tag);
        m_reducing.push_back(&done);
    } else if (m_lastMicroBatch && m_communicator.worldSize() > 1) {
        drainReductions(kReductionsInFlight);
        done.reducing = m_communicator.allReduce(done.gradient_S, tag);
        m_reducing.push_back(&done);
    }
    done.gradientHolds = true;
}

void Engine::drainReductions(size_t keep)
{
    while (m_reducing.size() > keep) {
        ShardedUnit &oldest = *m_reducing.front();
        m_reducing.pop_front();
        const observe::SpanScope span(m_observer, {"wait for reduction", SpanCategory::Idle, Phase::Backward,
                                                   oldest.index, 0, oldest.reducing.collective()});
        oldest.reducing.wait();
        oldest.reducing = {};
        oldest.unreduced_G.reset();
    }
}

void Engine::endPass()
{
    const bool keepsToNextPass =
        m_pass == PassKind::Train && m_options.strategy == Strategy::GradOp && !m_lastMicroBatch;
    if (keepsToNextPass)
        return;
    for (const auto &unit : m_units)
        freeGathered(*unit);
    m_slots.clear();
}

} // namespace shardscope::engine
