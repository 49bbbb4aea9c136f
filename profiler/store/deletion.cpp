// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/deletion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace shardscope::store {
namespace {

constexpr int64_t kMetricsKeptNs = 3'600'000'000'000;

/// What belongs to a step that is kept stays, wherever it lies: the host is ahead of the device.
std::string ofItsSteps(const StepRetention::Deletion &deletion)
{
    return fmt::format("(step_id IS NULL OR step_id BETWEEN {} AND {})", deletion.oldestStepId, deletion.lastStepId);
}

std::string within(std::string_view column, int64_t fromNs, int64_t toNs)
{
    return fmt::format("{0} >= {1} AND {0} < {2}", column, fromNs, toNs);
}

} // namespace

void deleteSpans(SQLite::Database &database, const LaneClocks &lanes, const StepRetention::Deletion &deletion)
{
    const StepRetention::Starts from = deletion.from;
    const StepRetention::Starts to = deletion.to;
    const std::string ofSteps = ofItsSteps(deletion);
    // By lane, so that each is one range of the primary key. Late records of older steps go with them.
    for (const auto &[lane, clock] : lanes) {
        const std::string range =
            fmt::format("lane_id = {} AND {}", lane,
                        clock == LaneClock::Host ? within("start_ns", from.hostNs, to.hostNs)
                                                 : within("start_ns", from.deviceNs, to.deviceNs));
        database.exec(fmt::format("DELETE FROM span WHERE {} AND {}", range, ofSteps));
        // A kernel goes with its span, which knows the step.
        database.exec(fmt::format("DELETE FROM kernel WHERE {} AND NOT EXISTS (SELECT 1 FROM span WHERE span.lane_id = "
                                  "kernel.lane_id AND span.start_ns = kernel.start_ns AND span.span_id = "
                                  "kernel.span_id)",
                                  range));
    }
    database.exec(
        fmt::format("DELETE FROM collective WHERE {} AND {}", within("enqueued_ns", from.hostNs, to.hostNs), ofSteps));
    database.exec(fmt::format("DELETE FROM allocation WHERE {}", within("freed_ns", from.hostNs, to.hostNs)));
}

void deleteMemory(SQLite::Database &database, const std::vector<int64_t> &peaksKept,
                  const StepRetention::Deletion &deletion)
{
    database.exec(fmt::format("DELETE FROM memory_peak WHERE memory_id IN (SELECT memory_id FROM memory WHERE step_id "
                              "BETWEEN {} AND {} AND is_step_peak = 1) AND memory_id NOT IN ({})",
                              deletion.firstStepId, deletion.lastStepId, fmt::join(peaksKept, ", ")));
    database.exec(fmt::format("DELETE FROM memory WHERE {} AND is_step_peak = 0 AND {}",
                              within("time_ns", deletion.newFromHostNs, deletion.to.hostNs), ofItsSteps(deletion)));
}

bool deleteOldestMetrics(SQLite::Database &database)
{
    // Two questions, each of which the index answers at once; with both in one SQLite reads all rows.
    const int64_t firstNs = database.execAndGet("SELECT ifnull(min(time_ns), 0) FROM metric").getInt64();
    const int64_t lastNs = database.execAndGet("SELECT ifnull(max(time_ns), 0) FROM metric").getInt64();
    const int64_t untilNs = std::min(firstNs + (lastNs - firstNs) / 4, lastNs - kMetricsKeptNs);
    return database.exec(fmt::format("DELETE FROM metric WHERE time_ns < {}", untilNs)) > 0;
}

} // namespace shardscope::store
