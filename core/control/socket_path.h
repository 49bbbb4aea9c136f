// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/run/run_folder.h"

#include <filesystem>

namespace shardscope::control {

/// <runtime directory>/<hash of the run's real path>.sock. Makes the folder (0700). A socket path ends at 108 bytes:
/// where XDG_RUNTIME_DIR is too long for that, the folder in /tmp serves.
Result<std::filesystem::path> controlSocketPath(const run::RunFolder &folder);

} // namespace shardscope::control
