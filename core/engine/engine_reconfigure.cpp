// SPDX-License-Identifier: Apache-2.0
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::engine {

void Engine::reconfigure(const shapes::ModelPlan &plan)
{
    const at::NoGradGuard noGrad;
    TORCH_CHECK(plan.units.size() == m_units.size() && plan.worldSize == m_plan.worldSize,
                "a plan for another model or number of ranks");
    finishReductions();
    waitForUpdates();
    for (Bucket &bucket : m_buckets)
        freeGathered(bucket);
    freeOffloadBuffers();
    for (size_t i = 0; i < m_units.size(); ++i) {
        Unit &unit = m_units[i];
        unit.settings = plan.units[i].settings;
        TORCH_CHECK(plan.units[i].buckets.size() == unit.buckets.size(), "the buckets of ", unit.name, " are fixed");
        for (size_t j = 0; j < unit.buckets.size(); ++j) {
            Bucket &bucket = m_buckets[unit.buckets[j]];
            TORCH_CHECK(!bucket.hasGradient(), "settings change between two steps only");
            if (bucket.settings != plan.units[i].buckets[j].settings)
                redistribute(bucket, plan.units[i].buckets[j].settings);
        }
    }
    m_plan = plan;
    assignSlots();
}

/// Whether some rank is to hold what it has not: then all of its group gather, whether they need it or not.
static bool somebodyLacks(int64_t ranks, int64_t groupBefore, int64_t groupAfter)
{
    for (int64_t rank = 0; rank < ranks; ++rank) {
        const ElementRange before = heldSlices(rank, ranks, groupBefore);
        const ElementRange after = heldSlices(rank, ranks, groupAfter);
        if (after != intersect(after, before))
            return true;
    }
    return false;
}

/// Moves what this rank holds of a bucket to what it is to hold, and to where that is to lie, one state after the
/// other.
void Engine::redistribute(Bucket &bucket, const shapes::BucketSettings &settings)
{
    const ElementRange before = bucket.held;
    Communicator *const sharers = bucket.groups.shard;
    const bool gathers = somebodyLacks(m_plan.worldSize, bucket.settings.shardGroup, settings.shardGroup);
    place(bucket, settings);
    bucket.resident_G.reset();
    bucket.copy = {};
    bucket.gradientOnHost = {};
    const auto move = [&](StateMemory &state, OffloadPlace place, MemoryCategory category) {
        if (state.defined() && (gathers || before != bucket.held || state.place() != place))
            state = moved(state, place, before, bucket.held, gathers ? sharers : nullptr, bucket, category);
    };
    move(bucket.master, settings.offloadParameters, MemoryCategory::Parameters);
    move(bucket.moment1, settings.offloadOptimizer, MemoryCategory::Optimizer);
    move(bucket.moment2, settings.offloadOptimizer, MemoryCategory::Optimizer);
    refreshCopies(bucket);
}

/// The same values in another place. gathers: the ranks that share the bucket until now, where some are to hold more.
StateMemory Engine::moved(const StateMemory &state, OffloadPlace place, ElementRange before, ElementRange after,
                          Communicator *gathers, const Bucket &bucket, MemoryCategory category)
{
    const observe::MemoryTag tag{category, bucket.index};
    at::Tensor from = state.tensor();
    ElementRange has = before;
    if (gathers) {
        const at::Tensor whole_G =
            allocate(bucket.layout.paddedElements, fp32().dtype(state.type()), category, bucket.index);
        gathers->allGather(whole_G, from, {bucket.index, Phase::Optimizer}).wait();
        // The caller gives the host's memory back, which a device may still be copying from.
        if (device().is_cuda() && state.place() != OffloadPlace::None)
            c10::cuda::getCurrentCUDAStream().synchronize();
        from = whole_G;
        has = {0, bucket.layout.paddedElements};
        if (place == OffloadPlace::None && bucket.isWhole())
            return StateMemory(whole_G);
    }
    StateMemory to = m_places.make(place, after.size(), state.type(), tag, "what is offloaded");
    to.tensor().copy_(from.narrow(0, after.begin - has.begin, after.size()));
    return to;
}

} // namespace shardscope::engine
