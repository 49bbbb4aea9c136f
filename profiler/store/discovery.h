// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <vector>

namespace shardscope::store {

/// The databases of a run folder (all attempts, ranks in order, then the supervisor's), of an attempt's folder, or the
/// one that path is. Empty: a run folder without any yet. Fails where path is neither.
Result<std::vector<std::filesystem::path>> findDatabases(const std::filesystem::path &path);

} // namespace shardscope::store
