// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_ledger.h"

#include "core/shapes/flat_layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardscope::plan {

LedgerOptions LedgerOptions::from(const config::RunConfiguration &configuration)
{
    return {configuration.precision.compute, configuration.precision.moments, configuration.optimizer.kind,
            configuration.optimizer.momentum, configuration.train.accumulation};
}

std::vector<LedgerUnit> ledgerUnitsOf(const shapes::ModelPlan &plan)
{
    std::vector<LedgerUnit> units;
    for (const shapes::UnitPlan &unit : plan.units) {
        LedgerUnit &own = units.emplace_back(LedgerUnit{.plan = &unit});
        for (const shapes::BucketPlan &bucket : unit.buckets) {
            const shapes::BucketLayout layout = shapes::layOut(unit, bucket, plan.worldSize);
            own.buckets.push_back({&bucket, layout.elements(), layout.paddedElements,
                                   layout.paddedElements / bucket.settings.shardGroup});
        }
    }
    return units;
}

/// Adds bytes to where they lie.
static void add(MemoryLedger &ledger, int64_t &onDevice, OffloadPlace place, int64_t bytes)
{
    switch (place) {
    case OffloadPlace::None:
        onDevice += bytes;
        break;
    case OffloadPlace::Cpu:
        ledger.hostBytes += bytes;
        break;
    case OffloadPlace::Nvme:
        ledger.fileBytes += bytes;
        break;
    }
}

StateBytes stateBytesOf(const LedgerBucket &bucket, const LedgerOptions &options)
{
    const shapes::BucketSettings &settings = bucket.plan->settings;
    const int64_t compute = shapes::bytesOf(options.compute);
    const int64_t master = bucket.plan->frozen ? compute : 4;
    const bool isOffloaded = settings.offloadParameters != OffloadPlace::None;
    const bool hasCopy = master != compute && (isOffloaded || settings.strategy == Strategy::None);
    StateBytes bytes{.master = bucket.held * master, .copy = hasCopy ? bucket.held * compute : 0};
    if (bucket.plan->frozen)
        return bytes;
    const bool isAdam = options.optimizer == OptimizerKind::AdamW;
    bytes.moments = isAdam ? 2 : options.momentum != 0 ? 1 : 0;
    bytes.moment = bucket.held * shapes::bytesOf(options.moments);
    return bytes;
}

/// Masters, the copies that stay beside them, and moments.
static void addStates(MemoryLedger &ledger, const LedgerBucket &bucket, const LedgerOptions &options)
{
    const shapes::BucketSettings &settings = bucket.plan->settings;
    const StateBytes bytes = stateBytesOf(bucket, options);
    add(ledger, ledger.atRest.parameters, settings.offloadParameters, bytes.master + bytes.copy);
    add(ledger, ledger.atRest.optimizer, settings.offloadOptimizer, bytes.moments * bytes.moment);
    if (!bucket.plan->frozen && settings.offloadGradients != OffloadPlace::None)
        ledger.hostBytes += bucket.held * 4;
}

/// Whether products need a buffer beside what lies on the device whole and in their dtype.
static bool isGathered(const LedgerBucket &bucket, const LedgerOptions &options)
{
    const shapes::BucketSettings &settings = bucket.plan->settings;
    const bool isReady =
        bucket.plan->frozen || options.compute == Precision::Fp32 || settings.strategy == Strategy::None;
    return !(settings.shardGroup == 1 && settings.offloadParameters == OffloadPlace::None && isReady);
}

/// Its buffer is one of the slots.
static bool usesSlot(const LedgerBucket &bucket, const LedgerOptions &options)
{
    const shapes::BucketSettings &settings = bucket.plan->settings;
    return isGathered(bucket, options) && (settings.reshardsAfterForward() || settings.strategy == Strategy::None);
}

/// Units of a size that are gathered at once, at most.
static int64_t slotsOf(const shapes::ModelPlan &plan, int64_t blockBytes)
{
    const int64_t depth = plan.pass.prefetchDepth;
    int64_t slots = plan.pass.forwardPrefetch ? 1 + depth : 1;
    for (const shapes::UnitPlan &unit : plan.units) {
        if (unit.settings.prefetch == Prefetch::Pre)
            slots = std::max(slots, 1 + depth);
        else if (unit.settings.prefetch == Prefetch::Post)
            slots = std::max(slots, depth);
    }
    const int64_t limit = plan.pass.gatherLimitBytes;
    return limit > 0 && blockBytes > 0 ? std::clamp<int64_t>(limit / blockBytes, 1, slots) : slots;
}

struct SlotElements
{
    int64_t all = 0;
    int64_t ofBlock = 0; ///< of these, what one block uses
};

/// Slots as the engine makes them (Engine::assignSlots()): blocks share some for each of their buckets; embedding and
/// head share one as large as the largest of them, and what is less than half of it has its own.
static SlotElements slotElementsOf(const shapes::ModelPlan &plan, const std::vector<LedgerUnit> &units,
                                   const LedgerOptions &options)
{
    struct Class
    {
        int64_t largest = 0;
        int64_t users = 0;
        bool isWrapped = true;
    };
    std::map<size_t, Class> ofBlocks; // by the bucket's place in its unit
    std::vector<std::pair<const LedgerUnit *, const LedgerBucket *>> edges;
    int64_t largestEdge = 0;
    for (const LedgerUnit &unit : units) {
        for (size_t i = 0; i < unit.buckets.size(); ++i) {
            const LedgerBucket &bucket = unit.buckets[i];
            if (unit.plan->shape.kind != UnitKind::Block) {
                edges.emplace_back(&unit, &bucket);
                largestEdge = std::max(largestEdge, bucket.padded);
                continue;
            }
            Class &own = ofBlocks[i];
            own.largest = std::max(own.largest, bucket.padded);
            own.isWrapped = own.isWrapped && bucket.plan->wrapped;
            own.users += usesSlot(bucket, options) ? 1 : 0;
        }
    }
    int64_t blockElements = 0;
    for (const auto &[place, own] : ofBlocks)
        blockElements += own.users > 0 && !own.isWrapped ? own.largest : 0;
    const int64_t slots = slotsOf(plan, blockElements * shapes::bytesOf(options.compute));
    SlotElements sum;
    for (const auto &[place, own] : ofBlocks) {
        sum.all += std::min(own.users, own.isWrapped ? 1 : slots) * own.largest;
        sum.ofBlock += own.users > 0 ? own.largest : 0;
    }
    std::set<const LedgerUnit *> served;
    bool sharesEdge = false;
    for (const auto &[unit, bucket] : edges) {
        const bool isSmall = 2 * bucket->padded < largestEdge;
        const bool isFirst = !isSmall && served.insert(unit).second;
        if (!usesSlot(*bucket, options))
            continue;
        sharesEdge = sharesEdge || isFirst;
        sum.all += isFirst ? 0 : bucket->padded;
    }
    sum.all += sharesEdge ? largestEdge : 0;
    return sum;
}

/// What is kept whole to the end of a pass, and what smaller groups share between forward and backward: all blocks but
/// the last, which goes on to its backward.
static int64_t keptElements(const std::vector<LedgerUnit> &units, const LedgerOptions &options)
{
    const LedgerUnit *lastBlock = nullptr;
    for (const LedgerUnit &unit : units)
        lastBlock = unit.plan->shape.kind == UnitKind::Block ? &unit : lastBlock;
    int64_t sum = 0;
    for (const LedgerUnit &unit : units) {
        for (const LedgerBucket &bucket : unit.buckets) {
            const shapes::BucketSettings &settings = bucket.plan->settings;
            if (isGathered(bucket, options) && !usesSlot(bucket, options))
                sum += bucket.padded;
            else if (usesSlot(bucket, options) && !bucket.plan->wrapped && unit.plan->shape.kind == UnitKind::Block &&
                     &unit != lastBlock && settings.reshardGroup < settings.shardGroup)
                sum += bucket.padded / settings.reshardGroup;
        }
    }
    return sum;
}

MemoryLedger ledgerOf(const shapes::ModelPlan &plan, const LedgerOptions &options)
{
    const std::vector<LedgerUnit> units = ledgerUnitsOf(plan);
    MemoryLedger ledger;
    for (const LedgerUnit &unit : units) {
        for (const LedgerBucket &bucket : unit.buckets) {
            addStates(ledger, bucket, options);
            ledger.paddingElements += bucket.padded - bucket.elements;
        }
    }
    ledger.peak = ledger.atRest;
    const int64_t compute = shapes::bytesOf(options.compute);
    const SlotElements slots = slotElementsOf(plan, units, options);
    const int64_t kept = keptElements(units, options);
    ledger.peak.gathered = (slots.all + kept) * compute;
    ledger.gatheredAtLastBlock = (slots.ofBlock + kept) * compute;
    GradientPeak gradients = gradientPeakOf(plan.pass, units, options.microBatches);
    ledger.peak.gradients = gradients.bytes;
    ledger.unreduced = gradients.unreducedBytes;
    ledger.gradientsBefore = gradients.beforeBytes;
    ledger.gradientsAtUnit = std::move(gradients.unitBytes);
    return ledger;
}

} // namespace shardscope::plan
