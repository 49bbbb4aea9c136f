// SPDX-License-Identifier: Apache-2.0
// Weights and states of the engine: where they come from, and how they are read and written.
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <cmath>
#include <set>

namespace shardscope::engine {

/// Mixes a seed and a parameter's number so that neighbours share nothing (SplitMix64, Steele et al. 2014).
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

/// FNV-1a, 64 bits: the same number for a name on every machine.
static uint64_t numberOf(std::string_view name)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
}

static void fillFresh(const at::Tensor &value, const shapes::ParameterShape &shape, uint64_t seed)
{
    if (shape.adapter == shapes::AdapterPart::A) {
        const double bound = 1.0 / std::sqrt(static_cast<double>(shape.sizes[1]));
        at::Tensor(value).uniform_(-bound, bound, generatorFor(value.device(), seed));
    } else if (shape.kind == ParameterKind::Norm) {
        at::Tensor(value).fill_(1.0);
    } else if (shape.kind == ParameterKind::Bias || shape.adapter == shapes::AdapterPart::B) {
        at::Tensor(value).zero_();
    } else {
        at::Tensor(value).normal_(0.0, shape.initialStd, generatorFor(value.device(), seed));
    }
}

/// seedFor: of a parameter's own generator; nothing for a parameter that stays as it is.
void Engine::fillParameters(const std::function<std::optional<uint64_t>(const shapes::ParameterShape &)> &seedFor)
{
    const at::NoGradGuard noGrad;
    waitForUpdates();
    for (const Unit &unit : m_units) {
        std::set<Bucket *> filled;
        for (size_t parameter = 0; parameter < unit.parameters.size(); ++parameter) {
            const ParameterPlace &place = placeOf(unit.index, parameter);
            const auto seed = seedFor(place.shape);
            if (!seed)
                continue;
            const observe::MemoryScope memory(m_observer, {MemoryCategory::Temporary, unit.index});
            const at::Tensor value = at::empty(place.shape.sizes, fp32());
            fillFresh(value, place.shape, *seed);
            Bucket &bucket = bucketOf(unit.index, parameter);
            storeParameter(bucket, place, value);
            filled.insert(&bucket);
        }
        for (Bucket *bucket : filled)
            refreshCopies(*bucket);
    }
}

void Engine::initialize(int64_t seed)
{
    uint64_t ordinal = 0;
    fillParameters([&](const shapes::ParameterShape &shape) -> std::optional<uint64_t> {
        if (shape.adapter != shapes::AdapterPart::None)
            return std::nullopt;
        return mixSeed(static_cast<uint64_t>(seed), ordinal++);
    });
    initializeAdapters(seed);
}

void Engine::initializeAdapters(int64_t seed)
{
    fillParameters([&](const shapes::ParameterShape &shape) -> std::optional<uint64_t> {
        if (shape.adapter == shapes::AdapterPart::None)
            return std::nullopt;
        return mixSeed(static_cast<uint64_t>(seed), numberOf(shape.name));
    });
}

void Engine::storeParameter(Bucket &bucket, const ParameterPlace &place, const at::Tensor &value)
{
    const ElementRange range = intersect(place.range(), bucket.held);
    if (range.size() == 0)
        return;
    const at::Tensor part = value.reshape({-1}).narrow(0, range.begin - place.offset, range.size());
    waitForUpdate(bucket);
    bucket.master.tensor().narrow(0, range.begin - bucket.held.begin, range.size()).copy_(part);
}

/// What is derived from the masters: under `none` products use a copy that stays, where the masters' dtype is not
/// theirs; and of offloaded masters what is gathered has the products' dtype, so that fewer bytes are moved.
void Engine::refreshCopies(Bucket &bucket)
{
    const bool offloaded = bucket.master.place() != OffloadPlace::None;
    const bool sameType = bucket.master.type() == computeType();
    if (offloaded || sameType || bucket.settings.strategy != Strategy::None)
        bucket.resident_G.reset();
    if (!offloaded || sameType || (bucket.copy.defined() && bucket.copy.place() != bucket.master.place()))
        bucket.copy = {};
    if (sameType)
        return;
    if (offloaded) {
        if (!bucket.copy.defined() || bucket.copy.elements() != bucket.held.size())
            bucket.copy = m_places.make(bucket.master.place(), bucket.held.size(), computeType(),
                                        {MemoryCategory::Parameters, bucket.index}, "offloaded parameters");
        bucket.copy.tensor().copy_(bucket.master.tensor());
    } else if (bucket.settings.strategy == Strategy::None) {
        if (!bucket.resident_G.defined())
            bucket.resident_G = allocate(bucket.layout.paddedElements, fp32().dtype(computeType()),
                                         MemoryCategory::Parameters, bucket.index);
        bucket.resident_G.copy_(bucket.master.tensor());
    }
}

Bucket *Engine::find(std::string_view parameter, const ParameterPlace **place)
{
    for (Bucket &bucket : m_buckets) {
        *place = bucket.layout.find(parameter);
        if (*place)
            return &bucket;
    }
    return nullptr;
}

Result<> Engine::loadParameter(std::string_view name, const at::Tensor &value)
{
    const at::NoGradGuard noGrad;
    const ParameterPlace *place = nullptr;
    Bucket *bucket = find(name, &place);
    if (!bucket)
        return fail("The model has no parameter {}.", name);
    if (value.sizes() != at::IntArrayRef(place->shape.sizes)) {
        return fail("The parameter {} has the shape [{}], but the value for it has [{}].", name,
                    fmt::join(place->shape.sizes, ", "), fmt::join(value.sizes().vec(), ", "));
    }
    storeParameter(*bucket, *place, value);
    refreshCopies(*bucket);
    return {};
}

Result<at::Tensor> Engine::gatherFlat(std::string_view name, bool gradient)
{
    const at::NoGradGuard noGrad;
    const ParameterPlace *place = nullptr;
    Bucket *bucket = find(name, &place);
    if (!bucket)
        return fail("The model has no parameter {}.", name);
    waitForUpdate(*bucket);
    if (gradient)
        fetchGradient(*bucket);
    const at::Tensor held_S = gradient ? bucket->gradient_S : bucket->master.tensor();
    if (!held_S.defined())
        return fail("The parameter {} has no gradient: it is frozen, or no pass was made since the last update.", name);
    at::Tensor whole_G = held_S;
    if (bucket->isSharded()) {
        whole_G = allocate(bucket->layout.paddedElements, held_S.options().device(device()), MemoryCategory::Temporary,
                           bucket->index);
        bucket->groups.shard->allGather(whole_G, held_S, {bucket->index, Phase::Checkpoint}).wait();
    }
    return whole_G.narrow(0, place->offset, place->shape.elements())
        .view(place->shape.sizes)
        .to(device(), at::kFloat, false, true);
}

Result<at::Tensor> Engine::gatherParameter(std::string_view name)
{
    return gatherFlat(name, false);
}

Result<at::Tensor> Engine::gatherGradient(std::string_view name)
{
    finishReductions();
    auto gradient = gatherFlat(name, true);
    if (gradient && m_scaler)
        gradient->div_(m_scaler->scale());
    return gradient;
}

std::vector<StateShard> Engine::stateShards()
{
    ensureMoments();
    waitForUpdates();
    const bool isAdam = m_options.optimizer == OptimizerKind::AdamW;
    std::vector<StateShard> shards;
    for (const Bucket &bucket : m_buckets) {
        const auto add = [&](const char *state, const StateMemory &memory) {
            if (memory.defined())
                shards.push_back({bucket.index, state, &bucket.layout, bucket.held, bucket.owned, memory.tensor()});
        };
        add("master", bucket.master);
        add(isAdam ? "exp_avg" : "momentum", bucket.moment1);
        add("exp_avg_sq", bucket.moment2);
    }
    return shards;
}

std::optional<ScalerState> Engine::scalerState() const
{
    return m_scaler ? std::optional(m_scaler->state()) : std::nullopt;
}

void Engine::restoreScaler(const ScalerState &state)
{
    if (m_scaler)
        m_scaler->restore(state);
}

void Engine::stateRestored(int64_t optimizerSteps)
{
    const at::NoGradGuard noGrad;
    waitForUpdates();
    m_optimizerSteps = optimizerSteps;
    m_uncounted.reset();
    for (Bucket &bucket : m_buckets)
        refreshCopies(bucket);
}

} // namespace shardscope::engine
