// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/limits.h"
#include "profiler/store/query.h"
#include "profiler/store/readers.h"
#include "profiler/store/recording.h"

#include <algorithm>
#include <limits>

namespace shardscope::store {
namespace {

/// Brings up to date how long the lane's spans are, and which are open. Looks at what came since it looked last.
const LaneBound &updateBound(SourceFile &file, SQLite::Database &database, int64_t laneId)
{
    LaneBound &bound = file.laneBounds[laneId];
    Query flushes(database, "SELECT max(flush_id), min(first_start_ns) FROM flush WHERE flush_id > ?");
    flushes.bind(bound.lastFlushId);
    if (!flushes.next() || flushes.isNull(0))
        return bound;
    const bool first = bound.lastFlushId == 0;
    bound.lastFlushId = flushes.integer(0);
    if (flushes.isNull(1))
        return bound;
    const int64_t fromNs = first ? std::numeric_limits<int64_t>::min() : flushes.integer(1);
    Query lengths(database, "SELECT max(duration_ns), min(CASE WHEN duration_ns IS NULL THEN start_ns END) FROM span "
                            "WHERE lane_id = ? AND start_ns >= ?");
    lengths.bind(laneId, fromNs);
    if (!lengths.next())
        return bound;
    bound.longestNs = std::max(bound.longestNs, lengths.integerOr(0, 0));
    // Open spans before fromNs have not changed; those after it are found anew.
    if (!bound.firstOpenNs || *bound.firstOpenNs >= fromNs)
        bound.firstOpenNs = lengths.optionalInteger(1);
    return bound;
}

int64_t reachBack(const LaneBound &bound, int64_t fromNs)
{
    constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
    const int64_t back = fromNs < kLowest + bound.longestNs ? kLowest : fromNs - bound.longestNs;
    return std::min(back, bound.firstOpenNs.value_or(back));
}

void appendRow(const Query &query, const SourceFile &file, int64_t originNs, SpanColumns &columns)
{
    columns.startNs.push_back(query.integer(0) - originNs);
    columns.spanId.push_back(query.integer(1));
    columns.durationNs.push_back(query.integerOr(2, -1));
    columns.name.push_back(find(file.names, query.integer(3)));
    columns.category.push_back(query.word(4, SpanCategory::Host));
    const auto phase = query.optionalWord<Phase>(5);
    columns.phase.push_back(phase ? static_cast<int8_t>(*phase) : int8_t{-1});
    columns.step.push_back(file.stepNumber(query.optionalInteger(6)));
    columns.unit.push_back(find(file.units, query.optionalInteger(7)));
    columns.collectiveId.push_back(query.integerOr(8, -1));
    columns.bytes.push_back(query.integerOr(9, -1));
}

} // namespace

EpochRange toEpoch(const Catalog &catalog, int64_t fromNs, int64_t toNs)
{
    return {fromNs == kBeginning ? kBeginning : fromNs + catalog.originNs,
            toNs == kEnd ? kEnd : toNs + catalog.originNs};
}

void throwIfCancelled(const CancelToken &cancel)
{
    if (cancel.cancelled())
        throw SQLite::Exception("cancelled", SQLITE_INTERRUPT);
}

SpanColumns readSpans(SourceFile &file, const Catalog &catalog, Index lane, EpochRange range, bool overlapping,
                      const CancelToken &cancel)
{
    const int64_t laneId = catalog.lanes[static_cast<size_t>(lane)].laneId;
    DatabaseFile::Access access(file.database, &cancel);
    SQLite::Database &database = access.database();
    file.readStepNumbers(database);
    SpanColumns columns;
    columns.lane = lane;
    int64_t startNs = range.fromNs;
    if (overlapping && range.fromNs != kBeginning)
        startNs = reachBack(updateBound(file, database, laneId), range.fromNs);

    Query query(database, "SELECT start_ns, span_id, duration_ns, name_id, category, phase, step_id, unit_id, "
                          "collective_id, bytes FROM span WHERE lane_id = ? AND (start_ns, span_id) > (?, ?) AND "
                          "start_ns < ? ORDER BY start_ns, span_id LIMIT ?");
    int64_t spanId = std::numeric_limits<int64_t>::min();
    for (int64_t rows = kChunkRows; rows == kChunkRows;) {
        throwIfCancelled(cancel);
        rows = 0;
        query.bind(laneId, startNs, spanId, range.toNs, kChunkRows);
        while (query.next()) {
            ++rows;
            startNs = query.integer(0);
            spanId = query.integer(1);
            const bool reaches = query.isNull(2) || startNs + query.integer(2) > range.fromNs;
            if (startNs >= range.fromNs || reaches)
                appendRow(query, file, catalog.originNs, columns);
        }
    }
    return columns;
}

} // namespace shardscope::store
