// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: S a rank's part of a bucket.
#include "core/train/state_access.h"

#include "core/engine/dtype.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <algorithm>
#include <cstring>
#include <mutex>

namespace shardscope::train {

static constexpr int64_t kStagedBytes = int64_t{64} << 20;

std::vector<files::BucketEntry> bucketsOf(const StateShards &shards)
{
    std::vector<files::BucketEntry> buckets;
    for (const engine::StateShard &shard : shards) { // those of one bucket come together
        if (buckets.empty() || buckets.back().name != shard.layout->name) {
            files::BucketEntry bucket;
            bucket.name = shard.layout->name;
            bucket.paddedElements = shard.layout->paddedElements;
            for (const engine::ParameterPlace &place : shard.layout->parameters)
                bucket.tensors.push_back({place.shape.name, place.shape.sizes, place.offset});
            buckets.push_back(std::move(bucket));
        }
        buckets.back().states.push_back({shard.state, std::string(engine::dtypeName(shard.data_S.scalar_type()))});
    }
    return buckets;
}

std::vector<files::Expectation::Tensor> expectedTensors(const StateShards &shards)
{
    std::vector<files::Expectation::Tensor> tensors;
    for (const files::BucketEntry &bucket : bucketsOf(shards)) {
        std::vector<std::string> states;
        for (const files::StateEntry &state : bucket.states)
            states.push_back(state.name);
        for (const files::TensorEntry &tensor : bucket.tensors)
            tensors.push_back({tensor.name, tensor.sizes, states});
    }
    return tensors;
}

/// What of a parameter is held: a range of the bucket, empty where it is nothing.
static engine::ElementRange heldOf(const engine::StateShard &shard, const engine::ParameterPlace &place)
{
    return engine::intersect(place.range(), shard.held);
}

std::vector<files::CheckpointReader::Part> heldParts(const StateShards &shards)
{
    std::vector<files::CheckpointReader::Part> parts;
    for (const engine::StateShard &shard : shards) {
        for (const engine::ParameterPlace &place : shard.layout->parameters) {
            const engine::ElementRange held = heldOf(shard, place);
            if (held.size() > 0)
                parts.push_back({place.shape.name, shard.state, {held.begin - place.offset, held.end - place.offset}});
        }
    }
    return parts;
}

static std::span<std::byte> bytesOf(const at::Tensor &host)
{
    return {static_cast<std::byte *>(host.mutable_data_ptr()), static_cast<size_t>(host.nbytes())};
}

/// Fills a range of a parameter, by pieces that fit the buffer.
static Result<> readRange(const engine::StateShard &shard, const engine::ParameterPlace &place,
                          engine::ElementRange held, files::CheckpointReader &reader)
{
    const at::ScalarType type =
        engine::scalarTypeOf(fromText<Precision>(reader.dtypeOf(place.shape.name, shard.state)).value());
    const int64_t pieceElements = kStagedBytes / static_cast<int64_t>(c10::elementSize(type));
    for (int64_t begin = held.begin; begin < held.end; begin += pieceElements) {
        const int64_t end = std::min(held.end, begin + pieceElements);
        const at::Tensor host = at::empty({end - begin}, type);
        const files::CheckpointReader::Part part{
            place.shape.name, shard.state, {begin - place.offset, end - place.offset}};
        if (auto done = reader.read(part, bytesOf(host)); !done)
            return done;
        shard.data_S.narrow(0, begin - shard.held.begin, end - begin).copy_(host);
    }
    return {};
}

/// Whatever was there before: what no parameter fills must not count in a norm.
static void clearPadding(const engine::StateShard &shard)
{
    int64_t filled = shard.held.begin;
    const auto clear = [&](int64_t end) {
        if (end > filled)
            shard.data_S.narrow(0, filled - shard.held.begin, end - filled).zero_();
    };
    for (const engine::ParameterPlace &place : shard.layout->parameters) { // in the order of their offsets
        const engine::ElementRange held = heldOf(shard, place);
        if (held.size() == 0)
            continue;
        clear(held.begin);
        filled = held.end;
    }
    clear(shard.held.end);
}

Result<> readStates(const StateShards &shards, files::CheckpointReader &reader)
{
    const at::NoGradGuard noGrad;
    for (const engine::StateShard &shard : shards) {
        for (const engine::ParameterPlace &place : shard.layout->parameters) {
            if (auto done = readRange(shard, place, heldOf(shard, place), reader); !done)
                return done;
        }
        clearPadding(shard);
    }
    return {};
}

ShardSource::ShardSource(const engine::StateShard &shard)
    : m_owned_S(shard.ownedData())
{
}

Result<std::span<const std::byte>> ShardSource::read(int64_t offsetBytes, int64_t sizeBytes)
{
    const int64_t elementBytes = m_owned_S.element_size();
    const int64_t first = offsetBytes / elementBytes;
    const int64_t elements = sizeBytes / elementBytes;
    if (m_owned_S.is_cpu() && m_owned_S.is_contiguous())
        return bytesOf(m_owned_S.narrow(0, first, elements));
    const bool staged =
        m_staged.defined() && first >= m_stagedFirst && first + elements <= m_stagedFirst + m_staged.numel();
    if (!staged) {
        m_stagedFirst = first;
        m_staged = m_owned_S.narrow(0, first, std::min(m_owned_S.numel() - first, kStagedBytes / elementBytes)).cpu();
    }
    return bytesOf(m_staged.narrow(0, first - m_stagedFirst, elements));
}

Result<> writeOwned(const StateShards &shards, files::PartWriter &writer)
{
    for (const engine::StateShard &shard : shards) {
        ShardSource source(shard);
        auto written = writer.write(shard.layout->name, shard.state, {shard.owned.begin, shard.owned.end},
                                    [&](int64_t offset, int64_t size) { return source.read(offset, size); });
        if (!written)
            return written;
    }
    return {};
}

static std::vector<std::pair<std::string, at::Generator>> generatorsOf(at::Device device)
{
    std::vector<std::pair<std::string, at::Generator>> all = {
        {"random.cpu", at::globalContext().defaultGenerator(at::kCPU)}};
    if (device.is_cuda())
        all.emplace_back("random.cuda", at::globalContext().defaultGenerator(device));
    return all;
}

RandomStates randomStates(at::Device device)
{
    RandomStates states;
    for (auto &[name, generator] : generatorsOf(device)) {
        const std::scoped_lock lock(generator.mutex());
        states.emplace_back(name, generator.get_state());
    }
    return states;
}

Result<> writeRandomStates(const RandomStates &states, files::PartWriter &writer)
{
    for (const auto &[name, state] : states) {
        if (auto written = writer.writeBlob(name, bytesOf(state)); !written)
            return written;
    }
    return {};
}

Result<> restoreRandomStates(at::Device device, int rank, files::CheckpointReader &reader)
{
    for (auto &[name, generator] : generatorsOf(device)) {
        const auto bytes = reader.blob(rank, name);
        if (!bytes)
            return tl::unexpected(bytes.error());
        if (bytes->empty())
            continue;
        const at::Tensor state = at::empty({static_cast<int64_t>(bytes->size())}, at::kByte);
        std::memcpy(state.mutable_data_ptr(), bytes->data(), bytes->size());
        const std::scoped_lock lock(generator.mutex());
        generator.set_state(state);
    }
    return {};
}

} // namespace shardscope::train
