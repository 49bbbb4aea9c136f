// SPDX-License-Identifier: Apache-2.0
// Writes one process's database. Rows are gathered in memory and written by flush() in one transaction, so that a
// reader sees a commit whole or not at all, and a kill loses the last half second and nothing else.
#pragma once

#include "core/base/result.h"
#include "profiler/store/rows.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace shardscope::store {

/// Which steps keep their spans, kernels, collectives and memory samples. Every step keeps its sums and its peak.
struct Retention
{
    int64_t keepSteps = 200;             ///< the newest; 0: all
    int64_t keepFirst = 10;              ///< and the first ones
    int64_t maxBytes = int64_t{4} << 30; ///< of the database; fewer steps are kept where it would be more; 0: no limit
};

struct WriterOptions
{
    int64_t processId = 1; ///< whose flush rows these are
    Retention retention;
};

/// Owned and used by one thread (opened on one thread, it may move to another before its first use there).
class Writer
{
public:
    /// Creates the database, or goes on with one of the same schema version. Fails where the folder is missing or not
    /// writable, or where the file is something else.
    static Result<Writer> open(const std::filesystem::path &path, const WriterOptions &options = {});
    Writer(Writer &&) noexcept;
    Writer &operator=(Writer &&) noexcept;
    /// Closes; who wants to know whether that worked calls close() before.
    ~Writer();

    /// The id of an interned text.
    int64_t nameId(std::string_view text);
    /// One above the greatest committed id of a table ("step", "lane", …): 1 in a new database.
    Result<int64_t> nextId(std::string_view table) const;

    // What describes and repeats: known by its id, put again it replaces itself. Kept until a commit has succeeded.
    void put(const MetaRow &row);
    void put(const ProcessRow &row);
    void put(const DeviceRow &row);
    void put(const LaneRow &row);
    void put(const UnitRow &row);
    void put(const ConfigRow &row);
    void put(const StepRow &row);
    void put(const CommunicatorRow &row);

    // What comes in numbers.
    void put(const CollectiveRow &row); ///< put again (ended), it replaces itself
    void add(const SpanRow &row);
    void add(const KernelRow &row);
    void add(const MemoryRow &row);
    void add(const MemoryPeakRow &row);
    void add(const AllocationRow &row);
    void add(const SegmentRow &row);
    void add(const MetricRow &row);
    void add(const EventRow &row);
    void add(const ClockRow &row);

    /// Commits what came since the last flush, with a row of `flush`, and deletes what the retention no longer keeps.
    /// Call it at least every 500 ms. droppedRecords: what the caller lost since the last flush. On an error (a full
    /// disk) nothing of this commit is stored; what came in numbers is given up and counted as dropped by the next
    /// commit that succeeds; events and what describes are tried again then.
    Result<> flush(int64_t droppedRecords = 0);

    /// Flushes, checkpoints the write-ahead log and leaves one file. The writer is then of no more use.
    Result<> close(int64_t droppedRecords = 0);

    /// Records written and given up so far.
    int64_t spansWritten() const;
    int64_t recordsDropped() const;

private:
    struct State;
    explicit Writer(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace shardscope::store
