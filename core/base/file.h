// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope {

/// The whole file, or why it could not be read.
Result<std::string> readTextFile(const std::filesystem::path &path);

/// Absolute and without "." and "..". The error is of a relative path where the folder that the program was started in
/// is gone.
Result<std::filesystem::path> absolutePath(const std::filesystem::path &path);

/// What a folder holds, in no order. None where it can't be read; those before where reading it fails in the middle.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path &folder);

/// What a machine that loses its power may take with it.
enum class Durability {
    Lasting, ///< nothing: file and name are on the disk. Waits for it
    Passing  ///< the newest texts, of a file that is written again and again
};

/// Writes beside and renames: readers see the old text or the new one, never half of it.
Result<> writeFileAtomically(const std::filesystem::path &path, std::string_view text,
                             Durability durability = Durability::Lasting);

/// Makes new names in a folder last. Does nothing on file systems that can't.
Result<> syncFolder(const std::filesystem::path &folder);

} // namespace shardscope
