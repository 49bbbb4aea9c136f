// SPDX-License-Identifier: Apache-2.0
// What an engine has: its units, their layouts and masters.
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <algorithm>

namespace shardscope::engine {

EngineOptions EngineOptions::from(const config::RunConfiguration &configuration)
{
    EngineOptions options;
    options.strategy = configuration.parallel.strategy;
    options.compute = configuration.precision.compute;
    options.prefetch = configuration.parallel.prefetch != Prefetch::Off;
    options.forwardPrefetch = configuration.parallel.forwardPrefetch;
    options.optimizer = configuration.optimizer.kind;
    if (configuration.optimizer.betas.size() == 2) {
        options.beta1 = configuration.optimizer.betas[0];
        options.beta2 = configuration.optimizer.betas[1];
    }
    options.eps = configuration.optimizer.eps;
    options.momentum = configuration.optimizer.momentum;
    options.weightDecay = configuration.optimizer.weightDecay;
    options.noDecay = configuration.optimizer.noDecay;
    return options;
}

Engine::Engine(std::vector<shapes::UnitShape> units, EngineOptions options, Communicator &communicator,
               observe::Observer &observer)
    : m_options(std::move(options))
    , m_communicator(communicator)
    , m_observer(observer)
{
    const at::NoGradGuard noGrad;
    for (const shapes::UnitShape &shape : units) {
        m_units.push_back(std::make_unique<ShardedUnit>());
        m_units.back()->index = static_cast<observe::UnitIndex>(m_units.size() - 1);
        setUpUnit(*m_units.back(), shape);
    }
    assignSlots();
}

Engine::~Engine()
{
    // Work in the queue reads and writes the units' buffers.
    for (const auto &unit : m_units) {
        try {
            unit->gathering.wait();
            unit->reducing.wait();
        } catch (const std::exception &) {
            // Whoever waited for it before was told; here it only has to be over.
        }
    }
}

at::ScalarType Engine::computeType() const
{
    return m_options.compute == Precision::Bf16 ? at::kBFloat16 : at::kFloat;
}

at::TensorOptions Engine::fp32() const
{
    return at::TensorOptions(device()).dtype(at::kFloat);
}

at::Tensor Engine::allocate(int64_t elements, const at::TensorOptions &options, MemoryCategory category,
                            observe::UnitIndex unit, bool zero)
{
    const observe::MemoryScope memory(m_observer, {category, unit});
    return zero ? at::zeros({elements}, options) : at::empty({elements}, options);
}

void Engine::setUpUnit(ShardedUnit &unit, const shapes::UnitShape &shape)
{
    unit.kind = shape.kind;
    unit.layout = layOut(shape, m_communicator.worldSize());
    unit.held = m_options.strategy == Strategy::None ? ElementRange{0, unit.layout.paddedElements}
                                                     : unit.layout.sliceOf(m_communicator.rank());
    unit.decay = decayRanges(unit.layout, m_options.noDecay);
    unit.master_S = allocate(unit.held.size(), fp32(), MemoryCategory::Parameters, unit.index, true);
    if (m_options.strategy == Strategy::None && m_options.compute == Precision::Bf16) {
        unit.resident_G = allocate(unit.layout.paddedElements, fp32().dtype(at::kBFloat16), MemoryCategory::Parameters,
                                   unit.index, true);
    }
}

/// Blocks share two slots: the one that computes and the one that is on its way. Embedding and head are another size,
/// and one slot serves both, because the block between them parts their uses.
void Engine::assignSlots()
{
    int64_t block = 0;
    int64_t edge = 0;
    for (const auto &unit : m_units) {
        int64_t &largest = unit->kind == UnitKind::Block ? block : edge;
        largest = std::max(largest, unit->layout.paddedElements);
    }
    for (const auto &unit : m_units) {
        const bool isSmall = 2 * unit->layout.paddedElements < edge;
        if (unit->kind == UnitKind::Block) {
            unit->slotElements = block;
            unit->slotLimit = 2;
        } else {
            unit->slotElements = isSmall ? unit->layout.paddedElements : edge;
            unit->slotLimit = 1;
        }
    }
    // Where a block is as large as an edge, their classes are one and need the slots of both.
    if (block == edge) {
        for (const auto &unit : m_units)
            unit->slotLimit = unit->slotElements == block ? 3 : unit->slotLimit;
    }
}

const BucketLayout &Engine::layout(observe::UnitIndex index) const
{
    return unit(index).layout;
}

std::vector<observe::UnitInfo> Engine::unitInfos() const
{
    std::vector<observe::UnitInfo> infos;
    for (const auto &unit : m_units) {
        observe::UnitInfo info;
        info.name = unit->layout.name;
        info.kind = unit->kind;
        info.ordinal = unit->index;
        info.parameters = unit->layout.elements();
        info.parameterBytes = info.parameters * static_cast<int64_t>(c10::elementSize(computeType()));
        info.shardBytes = unit->held.size() * static_cast<int64_t>(sizeof(float));
        info.paddingBytes = unit->layout.paddingElements() * static_cast<int64_t>(sizeof(float));
        infos.push_back(std::move(info));
    }
    return infos;
}

} // namespace shardscope::engine
