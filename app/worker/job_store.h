// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/worker/rank_environment.h"
#include "core/base/result.h"

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace shardscope::worker {

/// The store through which the ranks of a job find each other: rank 0 listens at MASTER_PORT (or at the socket that the
/// supervisor handed on), all others connect; with torchrun's agent store everybody connects. Rank 0 waits until all
/// are there, the others until rank 0 is. Null where one rank needs none. The error says who did not come.
Result<c10::intrusive_ptr<c10d::Store>> connectStore(const RankEnvironment &place,
                                                     std::chrono::seconds patience = std::chrono::minutes(5));

} // namespace shardscope::worker
