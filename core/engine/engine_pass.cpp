// SPDX-License-Identifier: Apache-2.0
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <algorithm>

namespace shardscope::engine {

void Engine::beginPass(PassKind kind, bool lastMicroBatch)
{
    m_pass = kind;
    m_lastMicroBatch = lastMicroBatch;
    for (Bucket &bucket : m_buckets)
        bucket.written.assign(bucket.layout.parameters.size(), false);
    for (Unit &unit : m_units)
        unit.inBackward = false;
}

/// All that is gathered with the unit. False where no slot is free.
bool Engine::startGather(Unit &unit, Phase phase)
{
    bool all = true;
    for (const size_t index : unit.buckets) {
        Bucket &bucket = m_buckets[index];
        all = (bucket.wrapped || startGather(bucket, phase)) && all;
    }
    if (all && m_reader)
        readAhead(unit, phase);
    return all;
}

bool Engine::startGather(Bucket &bucket, Phase phase)
{
    if (bucket.gathered_G.defined())
        return true;
    waitForUpdate(bucket);
    const bool isOnDevice = bucket.master.place() == OffloadPlace::None;
    if (isOnDevice && bucket.isWhole() && (bucket.resident_G.defined() || bucket.master.type() == computeType())) {
        bucket.gathered_G = bucket.resident_G.defined() ? bucket.resident_G : bucket.master.tensor();
        return true;
    }
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Gathered, bucket.index});
    const at::TensorOptions options = fp32().dtype(computeType());
    if (bucket.freesAfterForward() || m_pass == PassKind::Evaluate) {
        bucket.slot = m_slots.take(bucket.slotClass, options);
        if (!bucket.slot.defined())
            return false;
        bucket.gathered_G = bucket.slot.narrow(0, 0, bucket.layout.paddedElements);
    } else {
        bucket.gathered_G = at::empty({bucket.layout.paddedElements}, options);
    }
    m_order.add(Operation::AllGather, bucket.index);
    const bool fromPart = bucket.resharded_S.defined();
    Communicator &group = fromPart ? *bucket.groups.reshard : *bucket.groups.shard;
    bucket.gathering =
        group.allGather(bucket.gathered_G, fromPart ? bucket.resharded_S : gatherSource(bucket), {bucket.index, phase});
    return true;
}

void Engine::waitForGather(Bucket &bucket, Phase phase)
{
    if (!bucket.gathering)
        return;
    const observe::SpanScope span(
        m_observer, {"wait for parameters", SpanCategory::Idle, phase, bucket.index, 0, bucket.gathering.collective()});
    bucket.gathering.wait();
    bucket.gathering = {};
    endReading(bucket);
}

void Engine::acquire(observe::UnitIndex index, Phase phase, std::initializer_list<observe::UnitIndex> next)
{
    Unit &wanted = unitAt(index);
    wanted.inBackward = phase == Phase::Backward;
    TORCH_CHECK(startGather(wanted, phase), "no free slot to gather ", wanted.name,
                ": a unit was acquired and not released");
    m_gatherAfter.clear();
    const Prefetch backward = wanted.settings.prefetch;
    if (wanted.inBackward && backward == Prefetch::Post)
        m_gatherAfter.assign(next);
    else if (wanted.inBackward ? backward == Prefetch::Pre : m_plan.pass.forwardPrefetch)
        gatherAhead({next.begin(), next.size()}, phase);
    if (wanted.inBackward && next.size() == 0) // the last: nothing else is gathered, and gradients are at their most
        m_slots.clear();
    for (const size_t bucket : wanted.buckets)
        waitForGather(m_buckets[bucket], phase);
}

/// The units that the caller names and those behind the last of them, as deep as the plan says. In the same order on
/// all ranks: what stops it is the same on all of them.
void Engine::gatherAhead(std::span<const observe::UnitIndex> next, Phase phase)
{
    std::vector<observe::UnitIndex> units(next.begin(), next.end());
    const observe::UnitIndex step = phase == Phase::Backward ? -1 : 1;
    for (int64_t depth = 1; depth < m_plan.pass.prefetchDepth && !units.empty(); ++depth) {
        const observe::UnitIndex further = units.back() + step;
        if (further < firstGathered(phase) || further >= unitCount())
            break;
        units.push_back(further);
    }
    for (const observe::UnitIndex unit : units) {
        if (!gatherIsWithinLimit(unitAt(unit)) || !startGather(unitAt(unit), phase))
            break;
    }
}

/// The embedding's backward needs no parameters, and below the first unit that is trained nobody goes.
observe::UnitIndex Engine::firstGathered(Phase phase) const
{
    return phase == Phase::Backward ? std::max<observe::UnitIndex>(1, firstTrained()) : 0;
}

bool Engine::gatherIsWithinLimit(const Unit &unit) const
{
    const int64_t limit = m_plan.pass.gatherLimitBytes;
    if (limit == 0)
        return true;
    int64_t elements = 0;
    for (const Bucket &bucket : m_buckets)
        elements += bucket.gathering || bucket.slot.defined() ? bucket.layout.paddedElements : 0;
    for (const size_t index : unit.buckets) {
        const Bucket &bucket = m_buckets[index];
        elements += bucket.gathered_G.defined() || bucket.wrapped ? 0 : bucket.layout.paddedElements;
    }
    return elements * static_cast<int64_t>(c10::elementSize(computeType())) <= limit;
}

void Engine::freeGathered(Bucket &bucket)
{
    if (bucket.gathering) {
        bucket.gathering.wait();
        bucket.gathering = {};
    }
    endReading(bucket);
    bucket.gathered_G.reset();
    if (bucket.slot.defined())
        m_slots.giveBack(bucket.slotClass, std::move(bucket.slot));
    bucket.slot = at::Tensor();
}

/// What a smaller group shares until backward.
void Engine::keepPart(Bucket &bucket)
{
    const Communicator &group = *bucket.groups.reshard;
    if (group.worldSize() == bucket.groups.shard->worldSize() || !bucket.slot.defined())
        return;
    const int64_t elements = bucket.layout.paddedElements / group.worldSize();
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Gathered, bucket.index});
    bucket.resharded_S = bucket.gathered_G.narrow(0, group.rank() * elements, elements).clone();
}

void Engine::release(observe::UnitIndex index, bool needAgain)
{
    Unit &used = unitAt(index);
    if (!needAgain) {
        for (const size_t i : used.buckets) {
            Bucket &bucket = m_buckets[i];
            const bool keepsToEnd = m_pass == PassKind::Train && !bucket.freesAfterForward();
            if (bucket.wrapped || keepsToEnd)
                continue;
            // A block is used once more, in backward; embedding and head are not.
            if (m_pass == PassKind::Train && used.kind == UnitKind::Block && !used.inBackward)
                keepPart(bucket);
            freeGathered(bucket);
            if (used.inBackward)
                bucket.resharded_S.reset();
        }
    }
    gatherAhead(m_gatherAfter, Phase::Backward);
    m_gatherAfter.clear();
}

void Engine::beginPart(observe::UnitIndex index, std::span<const size_t> parameters, Phase phase)
{
    for (const size_t parameter : parameters) {
        Bucket &bucket = bucketOf(index, parameter);
        if (!bucket.wrapped)
            continue;
        TORCH_CHECK(startGather(bucket, phase), "no free slot to gather ", bucket.layout.name);
        waitForGather(bucket, phase);
    }
}

void Engine::endPart(observe::UnitIndex index, std::span<const size_t> parameters)
{
    for (const size_t parameter : parameters) {
        Bucket &bucket = bucketOf(index, parameter);
        const bool keepsToEnd = m_pass == PassKind::Train && !bucket.freesAfterForward();
        if (bucket.wrapped && !keepsToEnd)
            freeGathered(bucket);
    }
}

const ParameterPlace &Engine::placeOf(observe::UnitIndex unit, size_t parameter) const
{
    return bucketOf(unit, parameter).layout.parameters[unitAt(unit).parameters[parameter].place];
}

at::Tensor Engine::parameter(observe::UnitIndex index, size_t parameterIndex) const
{
    const Bucket &from = bucketOf(index, parameterIndex);
    TORCH_CHECK(from.gathered_G.defined(), from.layout.name, " is used while its parameters are not gathered");
    const ParameterPlace &place = placeOf(index, parameterIndex);
    return from.gathered_G.narrow(0, place.offset, place.shape.elements()).view(place.shape.sizes);
}

/// Rows and columns of neighbouring matrices taken as one; rows 0 where there is a gap or the columns differ.
std::pair<int64_t, int64_t> Engine::fusedSize(observe::UnitIndex unit, size_t first, size_t count) const
{
    int64_t rows = 0;
    const int64_t columns = placeOf(unit, first).shape.sizes.back();
    int64_t end = placeOf(unit, first).offset;
    for (size_t i = first; i < first + count; ++i) {
        const ParameterPlace &place = placeOf(unit, i);
        const bool isNext = unitAt(unit).parameters[i].bucket == unitAt(unit).parameters[first].bucket;
        if (!isNext || place.offset != end || place.shape.sizes.size() != 2 || place.shape.sizes[1] != columns)
            return {0, 0};
        rows += place.shape.sizes[0];
        end = place.range().end;
    }
    return {rows, columns};
}

at::Tensor Engine::fusedParameter(observe::UnitIndex index, size_t first, size_t count) const
{
    const Bucket &from = bucketOf(index, first);
    TORCH_CHECK(from.gathered_G.defined(), from.layout.name, " is used while its parameters are not gathered");
    const auto [rows, columns] = fusedSize(index, first, count);
    if (rows == 0)
        return {};
    return from.gathered_G.narrow(0, placeOf(index, first).offset, rows * columns).view({rows, columns});
}

void Engine::endPass()
{
    const bool isLast = m_pass == PassKind::Evaluate || m_lastMicroBatch;
    for (Bucket &bucket : m_buckets) {
        bucket.resharded_S.reset();
        const bool keepsToNextPass = bucket.settings.strategy == Strategy::GradOp && !isLast;
        if (!keepsToNextPass)
            freeGathered(bucket); // and what was read ahead in vain
    }
    m_gatherAfter.clear();
    m_slots.clear();
}

} // namespace shardscope::engine
