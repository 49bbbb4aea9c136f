// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <functional>

namespace shardscope::store {

using CopyFile = std::function<Result<>(const std::filesystem::path &from, const std::filesystem::path &to)>;
/// Over what is there; the copy may be written.
Result<> copyPlainFile(const std::filesystem::path &from, const std::filesystem::path &to);

std::filesystem::path logOf(const std::filesystem::path &database);
/// Size and time of a file, as text; "absent" where it is not there.
std::string signatureOf(const std::filesystem::path &path);

/// Copies a database and its write-ahead log, which somebody may be writing to, so that both are of one moment. An
/// error where each of several tries met a checkpoint of the log: then neither copy is of use.
Result<> copyLiveDatabase(const std::filesystem::path &database, const std::filesystem::path &to,
                          const CopyFile &copyFile = copyPlainFile);

} // namespace shardscope::store
