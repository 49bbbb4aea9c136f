// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/communicator.h"

#include <functional>

namespace shardscope::test {

/// Runs f once a rank, each on a thread of its own with its own Gloo process group over one store. Throws what a rank
/// threw (the lowest one's). On a CUDA device there can be one rank: NCCL takes two of a process for a mistake.
void runRanks(int worldSize, observe::Observer &observer, const std::function<void(engine::Communicator &)> &f,
              at::Device device = at::kCPU);

} // namespace shardscope::test
