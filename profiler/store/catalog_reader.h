// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/store/source_file.h"

#include <memory>
#include <vector>

namespace shardscope::store {

/// Brings the catalogue up to date with the small tables of a file; indices that are there stay. nameIndex: position of
/// each text in Catalog::names. Throws SQLite::Exception.
void readSmallTables(SourceFile &file, std::unordered_map<std::string, Index> &nameIndex, Catalog &catalog);

/// Fills attempts, ends, finished and complete from the processes and from what the supervisor wrote (its events of
/// deaths, and state.json in runFolder if there is one).
void summarizeAttempts(std::vector<std::unique_ptr<SourceFile>> &files, const std::filesystem::path &runFolder,
                       Catalog &catalog);

} // namespace shardscope::store
