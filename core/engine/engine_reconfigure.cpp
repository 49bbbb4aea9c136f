// SPDX-License-Identifier: Apache-2.0
#include "core/engine/engine.h"

#include <ATen/ATen.h>

namespace shardscope::engine {

void Engine::reconfigure(const shapes::ModelPlan &plan)
{
    const at::NoGradGuard noGrad;
    TORCH_CHECK(plan.units.size() == m_units.size() && plan.worldSize == m_plan.worldSize,
                "a plan for another model or number of ranks");
    drainReductions(0);
    for (Bucket &bucket : m_buckets)
        freeGathered(bucket);
    for (size_t i = 0; i < m_units.size(); ++i) {
        Unit &unit = m_units[i];
        unit.settings = plan.units[i].settings;
        TORCH_CHECK(plan.units[i].buckets.size() == unit.buckets.size(), "the buckets of ", unit.name, " are fixed");
        for (size_t j = 0; j < unit.buckets.size(); ++j) {
            Bucket &bucket = m_buckets[unit.buckets[j]];
            TORCH_CHECK(!bucket.gradient_S.defined(), "settings change between two steps only");
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

/// Moves what this rank holds of a bucket to what it is to hold, one state after the other.
void Engine::redistribute(Bucket &bucket, const shapes::BucketSettings &settings)
{
    const ElementRange before = bucket.held;
    Communicator &sharers = *bucket.groups.shard;
    const bool gathers = somebodyLacks(m_plan.worldSize, bucket.settings.shardGroup, settings.shardGroup);
    place(bucket, settings);
    const ElementRange after = bucket.held;
    const auto move = [&](at::Tensor &state_S, MemoryCategory category) {
        if (!state_S.defined() || (!gathers && before == after))
            return;
        const observe::MemoryScope memory(m_observer, {category, bucket.index});
        if (!gathers) {
            state_S = state_S.narrow(0, after.begin - before.begin, after.size()).clone();
            return;
        }
        at::Tensor whole_G = at::empty({bucket.layout.paddedElements}, state_S.options());
        sharers.allGather(whole_G, state_S, {bucket.index, Phase::Optimizer}).wait();
        state_S = bucket.isWhole() ? whole_G : whole_G.narrow(0, after.begin, after.size()).clone();
    };
    bucket.resident_G.reset();
    move(bucket.master_S, MemoryCategory::Parameters);
    move(bucket.moment1_S, MemoryCategory::Optimizer);
    move(bucket.moment2_S, MemoryCategory::Optimizer);
    refreshResident(bucket);
}

} // namespace shardscope::engine
