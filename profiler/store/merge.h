// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "profiler/store/cancel.h"

#include <filesystem>
#include <vector>

namespace shardscope::store {

/// Makes one database of several: ids of each file are moved above those of the files before it, names are shared, and
/// what the supervisors know of dead ranks is entered in `process`. Sources may be live: each is read in short
/// transactions. Writes beside the target and renames: a half-made target is never seen.
Result<> mergeDatabases(const std::vector<std::filesystem::path> &sources, const std::filesystem::path &target,
                        const CancelToken &cancel = {});

} // namespace shardscope::store
