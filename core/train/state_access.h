// SPDX-License-Identifier: Apache-2.0
// Between an engine's states and a checkpoint's files: the one place that touches the tensors of StateShards.
#pragma once

#include "core/engine/engine.h"
#include "core/files/checkpoint_part.h"
#include "core/files/checkpoint_reader.h"

#include <string>
#include <utility>
#include <vector>

namespace shardscope::train {

using StateShards = std::vector<engine::StateShard>;

/// The buckets as they lie now, with the states that they have.
std::vector<files::BucketEntry> bucketsOf(const StateShards &shards);
/// What a checkpoint must have for these states.
std::vector<files::Expectation::Tensor> expectedTensors(const StateShards &shards);

/// The ranges of parameters that this rank holds of all states: what it must read.
std::vector<files::CheckpointReader::Part> heldParts(const StateShards &shards);
/// Fills all that is held, on whichever device and in whichever dtype it is; padding becomes zero.
Result<> readStates(const StateShards &shards, files::CheckpointReader &reader);

/// Gives what a rank owns of one state piece by piece, from the device through a small buffer.
class ShardSource
{
public:
    explicit ShardSource(const engine::StateShard &shard);
    Result<std::span<const std::byte>> read(int64_t offsetBytes, int64_t sizeBytes);

private:
    at::Tensor m_owned_S;      ///< flat, where the engine has it
    at::Tensor m_staged;       ///< a part of it on the host
    int64_t m_stagedFirst = 0; ///< element of m_owned_S
};

/// Writes all that this rank owns, straight from the engine's tensors.
Result<> writeOwned(const StateShards &shards, files::PartWriter &writer);

/// LibTorch's generators of this process, as they are now; for `device` too where it is a GPU. By name: "random.cpu".
using RandomStates = std::vector<std::pair<std::string, at::Tensor>>;
RandomStates randomStates(at::Device device);
Result<> writeRandomStates(const RandomStates &states, files::PartWriter &writer);
/// Sets them to what rank `rank` had; a rank that was not there keeps its own.
Result<> restoreRandomStates(at::Device device, int rank, files::CheckpointReader &reader);

} // namespace shardscope::train
