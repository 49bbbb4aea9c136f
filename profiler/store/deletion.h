// SPDX-License-Identifier: Apache-2.0
// The SQL of the retention. All of it throws SQLite::Exception.
#pragma once

#include "profiler/store/step_retention.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <vector>

namespace shardscope::store {

/// Whose times a lane's spans have.
enum class LaneClock { Host, Device };
using LaneClocks = std::map<int64_t, LaneClock>; ///< by lane id

/// Spans, kernels, collectives and allocations of the deletion's steps.
void deleteSpans(SQLite::Database &database, const LaneClocks &lanes, const StepRetention::Deletion &deletion);

/// Memory samples of the deletion's steps but their peaks, and the peaks by unit but those of `peaksKept` (memory ids).
void deleteMemory(SQLite::Database &database, const std::vector<int64_t> &peaksKept,
                  const StepRetention::Deletion &deletion);

/// The oldest quarter of the metrics, but never those of the last hour. False: there are none so old. (Memory samples
/// of steps without spans are gone already.)
bool deleteOldestMetrics(SQLite::Database &database);

} // namespace shardscope::store
