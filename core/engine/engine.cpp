// SPDX-License-Identifier: Apache-2.0
// What an engine has: its units, their layouts and masters.
#include "core/engine/engine.h"

#include "core/engine/dtype.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <map>
#include <set>

namespace shardscope::engine {

EngineOptions EngineOptions::from(const config::RunConfiguration &configuration)
{
    EngineOptions options;
    options.compute = configuration.precision.compute;
    options.reduce = configuration.precision.reduce;
    options.moments = configuration.precision.moments;
    options.optimizer = configuration.optimizer.kind;
    if (configuration.optimizer.betas.size() == 2) {
        options.beta1 = configuration.optimizer.betas[0];
        options.beta2 = configuration.optimizer.betas[1];
    }
    options.eps = configuration.optimizer.eps;
    options.momentum = configuration.optimizer.momentum;
    options.weightDecay = configuration.optimizer.weightDecay;
    options.noDecay = configuration.optimizer.noDecay;
    options.offloadPath = configuration.offload.path;
    const auto &scaler = configuration.precision.scaler;
    if (options.compute == Precision::Fp16)
        options.scaler = {scaler.initial, scaler.growthFactor, scaler.backoff, scaler.growthInterval};
    return options;
}

Engine::Engine(shapes::ModelPlan plan, EngineOptions options, Communicator &communicator, observe::Observer &observer)
    : m_options(std::move(options))
    , m_plan(std::move(plan))
    , m_communicator(communicator)
    , m_observer(observer)
    , m_groups(communicator)
    , m_places(communicator.device(), communicator.rank(), m_options.offloadPath, observer)
{
    const at::NoGradGuard noGrad;
    TORCH_CHECK(m_plan.worldSize == communicator.worldSize(), "the plan is for ", m_plan.worldSize, " ranks, not for ",
                communicator.worldSize());
    for (const shapes::UnitPlan &unit : m_plan.units)
        setUpUnit(unit);
    assignSlots();
    if (m_options.scaler) {
        const observe::MemoryScope memory(m_observer, {MemoryCategory::Other, observe::kNoUnit});
        m_scaler.emplace(device(), *m_options.scaler);
    }
}

Engine::~Engine()
{
    // Work in the queue reads and writes the buckets' buffers.
    for (const Bucket &bucket : m_buckets) {
        for (const Pending &work : {bucket.gathering, bucket.reducing, bucket.replicating, bucket.updating,
                                    bucket.reading ? bucket.reading->isThere : Pending()}) {
            try {
                work.wait();
            } catch (const std::exception &) {
                // Whoever waited for it before was told; here it only has to be over.
            }
        }
    }
    try {
        freeOffloadBuffers();
    } catch (const std::exception &) {
        // Of a device that failed; whoever used it was told.
    }
}

at::ScalarType Engine::computeType() const
{
    return scalarTypeOf(m_options.compute);
}

at::TensorOptions Engine::fp32() const
{
    return at::TensorOptions(device()).dtype(at::kFloat);
}

/// What is frozen needs no more digits than products use.
at::ScalarType Engine::masterType(const Bucket &bucket) const
{
    return bucket.frozen ? computeType() : at::kFloat;
}

at::Tensor Engine::allocate(int64_t elements, const at::TensorOptions &options, MemoryCategory category,
                            observe::UnitIndex unit, bool zero)
{
    const observe::MemoryScope memory(m_observer, {category, unit});
    return zero ? at::zeros({elements}, options) : at::empty({elements}, options);
}

/// A unit's first bucket goes by the unit's own index where no rule sets it apart.
void Engine::setUpUnit(const shapes::UnitPlan &plan)
{
    Unit unit;
    unit.index = static_cast<observe::UnitIndex>(m_units.size());
    unit.name = plan.shape.name;
    unit.kind = plan.shape.kind;
    unit.settings = plan.settings;
    unit.parameters.resize(plan.shape.parameters.size());
    observe::UnitIndex apart = static_cast<observe::UnitIndex>(m_plan.units.size());
    for (const Bucket &bucket : m_buckets)
        apart = std::max(apart, bucket.index + 1);
    for (const shapes::BucketPlan &part : plan.buckets) {
        Bucket bucket;
        bucket.index = part.name == unit.name ? unit.index : apart++;
        bucket.kind = unit.kind;
        for (size_t place = 0; place < part.parameters.size(); ++place)
            unit.parameters[part.parameters[place]] = {m_buckets.size(), place};
        bucket.layout = layOut(plan, part, m_communicator.worldSize());
        bucket.frozen = part.frozen;
        bucket.wrapped = part.wrapped;
        place(bucket, part.settings);
        setUpBucket(bucket);
        unit.buckets.push_back(m_buckets.size());
        m_buckets.push_back(std::move(bucket));
    }
    m_units.push_back(std::move(unit));
}

/// Which part of the bucket is this rank's: of the N ÷ g ranks that hold the same slices each owns another one.
void Engine::place(Bucket &bucket, const shapes::BucketSettings &settings)
{
    for (const OffloadPlace place : {settings.offloadParameters, settings.offloadGradients, settings.offloadOptimizer})
        TORCH_CHECK(place != OffloadPlace::Cpu || device().is_cuda(),
                    "what a CPU rank has lies in host memory already");
    bucket.settings = settings;
    bucket.groups = m_groups.of(settings);
    const int64_t ranks = m_communicator.worldSize();
    const ElementRange slices = heldSlices(m_communicator.rank(), ranks, settings.shardGroup);
    bucket.held = {slices.begin * bucket.layout.sliceElements, slices.end * bucket.layout.sliceElements};
    bucket.owned = bucket.layout.sliceOf(slices.begin + m_communicator.rank() / settings.shardGroup);
}

void Engine::setUpBucket(Bucket &bucket)
{
    bucket.decay = decayRanges(bucket.layout, m_options.noDecay);
    bucket.master = m_places.make(bucket.settings.offloadParameters, bucket.held.size(), masterType(bucket),
                                  {MemoryCategory::Parameters, bucket.index}, "offloaded parameters");
    refreshCopies(bucket);
}

/// Blocks share slots: one for what computes and one for each gather that may be on its way; and so do the buckets that
/// rules set apart in them, each kind among its own. Embedding and head are another size, and one slot serves both,
/// because the block between them parts their uses.
void Engine::assignSlots()
{
    m_slots.reset();
    std::map<size_t, std::vector<Bucket *>> ofBlocks; // by the bucket's place in its unit
    std::vector<std::pair<observe::UnitIndex, Bucket *>> edges;
    int64_t largestEdge = 0;
    for (const Unit &unit : m_units) {
        for (size_t i = 0; i < unit.buckets.size(); ++i) {
            Bucket &bucket = m_buckets[unit.buckets[i]];
            if (unit.kind == UnitKind::Block) {
                ofBlocks[i].push_back(&bucket);
            } else {
                edges.emplace_back(unit.index, &bucket);
                largestEdge = std::max(largestEdge, bucket.layout.paddedElements);
            }
        }
    }
    const auto ahead = static_cast<size_t>(m_plan.pass.prefetchDepth);
    for (const auto &[place, buckets] : ofBlocks) {
        int64_t largest = 0;
        bool wrapped = true;
        for (const Bucket *bucket : buckets) {
            largest = std::max(largest, bucket->layout.paddedElements);
            wrapped = wrapped && bucket->wrapped;
        }
        const size_t slotClass = m_slots.addClass(largest, wrapped ? 1 : 1 + ahead);
        for (Bucket *bucket : buckets)
            bucket->slotClass = slotClass;
    }
    const size_t edgeClass = m_slots.addClass(largestEdge, 1);
    std::set<observe::UnitIndex> served; // units with a bucket in the edges' class
    for (const auto &[unit, bucket] : edges) {
        const bool isSmall = 2 * bucket->layout.paddedElements < largestEdge;
        const bool isFirst = !isSmall && served.insert(unit).second;
        bucket->slotClass = isFirst ? edgeClass : m_slots.addClass(bucket->layout.paddedElements, 1);
    }
}

bool Engine::trains(observe::UnitIndex unit) const
{
    return std::ranges::any_of(unitAt(unit).buckets, [&](size_t bucket) { return !m_buckets[bucket].frozen; });
}

observe::UnitIndex Engine::firstTrained() const
{
    const auto found = std::ranges::find_if(m_units, [this](const Unit &unit) { return trains(unit.index); });
    return found == m_units.end() ? static_cast<observe::UnitIndex>(m_units.size()) : found->index;
}

std::vector<observe::UnitInfo> Engine::unitInfos() const
{
    size_t count = m_units.size();
    for (const Bucket &bucket : m_buckets)
        count = std::max(count, static_cast<size_t>(bucket.index) + 1);
    std::vector<observe::UnitInfo> infos(count);
    for (const Unit &unit : m_units) {
        observe::UnitInfo &info = infos[static_cast<size_t>(unit.index)];
        info.name = unit.name;
        info.kind = unit.kind;
        info.ordinal = unit.index;
        for (const size_t index : unit.buckets) {
            const Bucket &bucket = m_buckets[index];
            observe::UnitInfo &own = infos[static_cast<size_t>(bucket.index)];
            if (bucket.index != unit.index) {
                own.name = bucket.layout.name;
                own.kind = unit.kind;
                own.ordinal = unit.index;
                own.parent = unit.index;
            }
            const auto masterBytes = static_cast<int64_t>(c10::elementSize(masterType(bucket)));
            own.parameters = bucket.layout.elements();
            own.parameterBytes = own.parameters * static_cast<int64_t>(c10::elementSize(computeType()));
            own.shardBytes = bucket.held.size() * masterBytes;
            own.paddingBytes = bucket.layout.paddingElements() * masterBytes;
        }
    }
    return infos;
}

} // namespace shardscope::engine
