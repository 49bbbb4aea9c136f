// SPDX-License-Identifier: Apache-2.0
// A database of the recording, with what turns its own ids into indices of the Catalog.
#pragma once

#include "profiler/store/database_file.h"
#include "profiler/store/snapshot.h"

#include <unordered_map>

namespace shardscope::store {

using IndexMap = std::unordered_map<int64_t, Index>;

inline Index find(const IndexMap &map, std::optional<int64_t> id)
{
    if (!id)
        return kNone;
    const auto found = map.find(*id);
    return found == map.end() ? kNone : found->second;
}

/// How far back a lane's spans can reach into a range.
struct LaneBound
{
    int64_t lastFlushId = 0; ///< up to where this is known
    int64_t longestNs = 0;
    std::optional<int64_t> firstOpenNs; ///< epoch
};

struct SourceFile
{
    SourceFile(const std::filesystem::path &path, const std::filesystem::path &cacheFolder)
        : database(path, cacheFolder)
    {
    }

    DatabaseFile database;
    bool readable = false; ///< its version was checked

    // Ids of this file → positions in the Catalog's lists.
    IndexMap processes, devices, lanes, names, units, communicators, configs;
    /// step_id → number.
    std::unordered_map<int64_t, int32_t> stepNumbers;
    int64_t lastStepId = 0;
    int64_t lastNameId = 0;
    int64_t lastFlushId = 0; ///< whose drops are in the catalogue
    std::unordered_map<int64_t, LaneBound> laneBounds;

    /// Learns the steps that are new. Throws SQLite::Exception.
    void readStepNumbers(SQLite::Database &database);
    int32_t stepNumber(std::optional<int64_t> stepId) const;
};

} // namespace shardscope::store
