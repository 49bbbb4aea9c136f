// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace shardscope {

/// The whole file, or why it could not be read.
Result<std::string> readTextFile(const std::filesystem::path &path);

/// Writes beside, syncs and renames: readers see the old text or the new one, never half of it.
Result<> writeFileAtomically(const std::filesystem::path &path, std::string_view text);

} // namespace shardscope
