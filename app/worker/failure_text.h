// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace shardscope::worker {

bool isOutOfMemory(const std::exception &error);
/// A collective failed because another rank is gone.
bool isPeerLost(const std::exception &error);

/// What LibTorch threw, for a user: what happened on which rank, and what to change.
std::string explainException(const std::exception &error, int rank);

} // namespace shardscope::worker
