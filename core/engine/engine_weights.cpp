// SPDX-License-Identifier: Apache-2.0
// Weights and states of the engine: where they come from, and how they are read and written.
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

namespace shardscope::engine {

/// The spread of fresh matrices, as GPT-2 and the peers in tests/peers have it.
static constexpr double kInitialStd = 0.02;

/// Mixes a seed and a parameter's ordinal so that neighbours share nothing (SplitMix64, Steele et al. 2014).
static uint64_t mixSeed(uint64_t seed, uint64_t ordinal)
{
    uint64_t z = seed + (ordinal + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
}

static at::Generator generatorFor(at::Device device, uint64_t seed)
{
    at::Generator generator =
        device.is_cuda() ? at::cuda::detail::createCUDAGenerator(device.index()) : at::detail::createCPUGenerator();
    generator.set_current_seed(seed);
    return generator;
}

void Engine::initialize(int64_t seed)
{
    const at::NoGradGuard noGrad;
    uint64_t ordinal = 0;
    for (const auto &unit : m_units) {
        for (const ParameterPlace &place : unit->layout.parameters) {
            const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, unit->index});
            at::Tensor value = at::empty(place.shape.sizes, fp32());
            if (place.shape.kind == shapes::ParameterKind::Norm)
                value.fill_(1.0);
            else
                value.normal_(0.0, kInitialStd, generatorFor(device(), mixSeed(static_cast<uint64_t>(seed), ordinal)));
            storeParameter(*unit, place, value);
            ++ordinal;
        }
        refreshResident(*unit);
    }
}

void Engine::storeParameter(ShardedUnit &unit, const ParameterPlace &place, const at::Tensor &value)
{
    const ElementRange range = intersect(place.range(), unit.held);
    if (range.size() == 0)
        return;
    const at::Tensor part = value.reshape({-1}).narrow(0, range.begin - place.offset, range.size());
    unit.master_S.narrow(0, range.begin - unit.held.begin, range.size()).copy_(part);
}

void Engine::refreshResident(ShardedUnit &unit)
{
    if (unit.resident_G.defined())
        unit.resident_G.copy_(unit.master_S);
}

Result<> Engine::loadParameter(std::string_view name, const at::Tensor &value)
{
    const at::NoGradGuard noGrad;
    for (const auto &unit : m_units) {
        const ParameterPlace *place = unit->layout.find(name);
        if (!place)
            continue;
        if (value.sizes() != at::IntArrayRef(place->shape.sizes)) {
            return fail("The parameter {} has the shape [{}], but the value for it has [{}].", name,
                        fmt::join(place->shape.sizes, ", "), fmt::join(value.sizes().vec(), ", "));
        }
        storeParameter(*unit, *place, value);
        refreshResident(*unit);
        return {};
    }
    return fail("The model has no parameter {}.", name);
}

Result<at::Tensor> Engine::gatherFlat(std::string_view name, bool gradient)
{
    const at::NoGradGuard noGrad;
    for (const auto &unit : m_units) {
        const ParameterPlace *place = unit->layout.find(name);
        if (!place)
            continue;
        const at::Tensor &held_S = gradient ? unit->gradient_S : unit->master_S;
        if (!held_S.defined())
            return fail("The parameter {} has no gradient: no pass was made since the last update.", name);
        at::Tensor whole_G = held_S;
        if (unit->held.size() != unit->layout.paddedElements) {
            whole_G = allocate(unit->layout.paddedElements, fp32(), MemoryCategory::Temporary, unit->index);
            m_communicator.allGather(whole_G, held_S, {unit->index, Phase::Checkpoint}).wait();
        }
        return whole_G.narrow(0, place->offset, place->shape.elements()).view(place->shape.sizes).clone();
    }
    return fail("The model has no parameter {}.", name);
}

Result<at::Tensor> Engine::gatherParameter(std::string_view name)
{
    return gatherFlat(name, false);
}

Result<at::Tensor> Engine::gatherGradient(std::string_view name)
{
    drainReductions(0);
    return gatherFlat(name, true);
}

std::vector<StateShard> Engine::stateShards()
{
    ensureMoments();
    const bool isAdam = m_options.optimizer == OptimizerKind::AdamW;
    std::vector<StateShard> shards;
    for (const auto &unit : m_units) {
        const ElementRange owned = unit->layout.sliceOf(m_communicator.rank());
        const auto add = [&](const char *state, const at::Tensor &data_S) {
            if (data_S.defined())
                shards.push_back({unit->index, state, &unit->layout, unit->held, owned, data_S});
        };
        add("master", unit->master_S);
        add(isAdam ? "exp_avg" : "momentum", unit->moment1_S);
        add("exp_avg_sq", unit->moment2_S);
    }
    return shards;
}

void Engine::stateRestored(int64_t optimizerSteps)
{
    const at::NoGradGuard noGrad;
    m_optimizerSteps = optimizerSteps;
    for (const auto &unit : m_units)
        refreshResident(*unit);
}

} // namespace shardscope::engine
