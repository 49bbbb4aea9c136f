// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/limits.h"
#include "profiler/store/query.h"
#include "profiler/store/readers.h"
#include "profiler/store/recording.h"

#include <limits>
#include <map>

namespace shardscope::store {
namespace {

constexpr int kFirstCategory = 6; ///< column of parameters_bytes in kColumns
constexpr int kAfterCategories = kFirstCategory + static_cast<int>(kMemoryCategories);
constexpr std::string_view kColumns =
    "memory_id, place, device_id, time_ns, step_id, is_step_peak, parameters_bytes, gathered_bytes, gradients_bytes, "
    "optimizer_bytes, activations_bytes, communication_bytes, temporary_bytes, input_bytes, other_bytes, "
    "rounding_bytes, pending_free_bytes, allocated_bytes, active_bytes, reserved_bytes, process_used_bytes, "
    "device_used_bytes";

void appendSample(const Query &query, const SourceFile &file, int64_t originNs, MemoryColumns &columns)
{
    columns.memoryId.push_back(query.integer(0));
    columns.timeNs.push_back(query.integer(3) - originNs);
    columns.step.push_back(file.stepNumber(query.optionalInteger(4)));
    columns.isStepPeak.push_back(query.integer(5) != 0);
    for (size_t i = 0; i < kMemoryCategories; ++i)
        columns.categoryBytes[i].push_back(query.integer(kFirstCategory + static_cast<int>(i)));
    columns.roundingBytes.push_back(query.integer(kAfterCategories));
    columns.pendingFreeBytes.push_back(query.integer(kAfterCategories + 1));
    columns.allocatedBytes.push_back(query.integer(kAfterCategories + 2));
    columns.activeBytes.push_back(query.integer(kAfterCategories + 3));
    columns.reservedBytes.push_back(query.integer(kAfterCategories + 4));
    columns.processUsedBytes.push_back(query.integerOr(kAfterCategories + 5, -1));
    columns.deviceUsedBytes.push_back(query.integerOr(kAfterCategories + 6, -1));
}

MemoryPeak peakOf(const Query &query, const SourceFile &file, const Catalog &catalog, Index process)
{
    MemoryPeak peak;
    peak.process = process;
    peak.memoryId = query.integer(0);
    peak.place = query.string(1);
    peak.timeNs = query.integer(3) - catalog.originNs;
    peak.step = file.stepNumber(query.optionalInteger(4));
    for (size_t i = 0; i < kMemoryCategories; ++i)
        peak.categoryBytes[i] = query.integer(kFirstCategory + static_cast<int>(i));
    peak.roundingBytes = query.integer(kAfterCategories);
    peak.allocatedBytes = query.integer(kAfterCategories + 2);
    return peak;
}

} // namespace

std::vector<MemoryColumns> readMemory(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                      EpochRange range, const CancelToken &cancel)
{
    DatabaseFile::Access access(file.database, &cancel);
    SQLite::Database &database = access.database();
    file.readStepNumbers(database);
    std::map<std::pair<std::string, Index>, MemoryColumns> places;
    Query query(database,
                fmt::format("SELECT {} FROM memory WHERE process_id = ? AND (time_ns, memory_id) > (?, ?) AND "
                            "time_ns < ? ORDER BY time_ns, memory_id LIMIT ?",
                            kColumns));
    int64_t timeNs = range.fromNs;
    int64_t memoryId = std::numeric_limits<int64_t>::min();
    for (int64_t rows = kChunkRows; rows == kChunkRows;) {
        throwIfCancelled(cancel);
        rows = 0;
        query.bind(processId, timeNs, memoryId, range.toNs, kChunkRows);
        while (query.next()) {
            ++rows;
            memoryId = query.integer(0);
            timeNs = query.integer(3);
            const Index device = find(file.devices, query.optionalInteger(2));
            MemoryColumns &columns = places[{query.string(1), device}];
            columns.process = process;
            columns.device = device;
            columns.place = query.text(1);
            appendSample(query, file, catalog.originNs, columns);
        }
    }
    std::vector<MemoryColumns> result;
    for (auto &[place, columns] : places)
        result.push_back(std::move(columns));
    return result;
}

std::optional<MemoryPeak> readMemoryPeak(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                         std::optional<int64_t> stepNumber)
{
    DatabaseFile::Access access(file.database, nullptr);
    SQLite::Database &database = access.database();
    file.readStepNumbers(database);
    // The device's memory is the scarce one; a run on the CPU has the host's alone. By the step's id and not by its
    // time: a peak is timed by the host, which runs ahead of the device that times the step.
    const std::string sql = fmt::format(
        "SELECT {} FROM memory WHERE process_id = ? AND is_step_peak = 1 {} ORDER BY place = 'device' DESC, place = "
        "'host' DESC, allocated_bytes DESC, time_ns LIMIT 1",
        kColumns, stepNumber ? "AND step_id IN (SELECT step_id FROM step WHERE process_id = ? AND number = ?)" : "");
    Query query(database, sql);
    if (stepNumber)
        query.bind(processId, processId, *stepNumber);
    else
        query.bind(processId);
    if (!query.next())
        return std::nullopt;
    MemoryPeak peak = peakOf(query, file, catalog, process);

    Query cells(database,
                "SELECT unit_id, category, sum(bytes) FROM memory_peak WHERE memory_id = ? AND process_id = ? "
                "GROUP BY unit_id, category ORDER BY unit_id, sum(bytes) DESC");
    cells.bind(peak.memoryId, processId);
    while (cells.next()) {
        peak.cells.push_back(
            {find(file.units, cells.optionalInteger(0)), cells.word(1, MemoryCategory::Other), cells.integer(2)});
    }
    return peak;
}

} // namespace shardscope::store
