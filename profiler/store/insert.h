// SPDX-License-Identifier: Apache-2.0
// One prepared INSERT for each kind of row.
#pragma once

#include "profiler/store/rows.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <string>

namespace shardscope::store {

/// A text in the table `name`.
struct NameRow
{
    int64_t nameId = 0;
    std::string text;
};

/// A step with what the writer knows of it.
struct StoredStep
{
    const StepRow &row;
    bool spansKept = true;
};

/// `INSERT OR REPLACE INTO table VALUES (?, …)`, prepared with the first row.
class Insert
{
public:
    Insert(SQLite::Database &database, std::string table);

    /// Binds and runs. Each throws SQLite::Exception.
    void operator()(const MetaRow &row);
    void operator()(const ProcessRow &row);
    void operator()(const ClockRow &row);
    void operator()(const DeviceRow &row);
    void operator()(const LaneRow &row);
    void operator()(const NameRow &row);
    void operator()(const UnitRow &row);
    void operator()(const ConfigRow &row);
    void operator()(const StoredStep &step);
    void operator()(const SpanRow &row);
    void operator()(const KernelRow &row);
    void operator()(const CommunicatorRow &row);
    void operator()(const CollectiveRow &row);
    void operator()(const MemoryRow &row);
    void operator()(const MemoryPeakRow &row);
    void operator()(const AllocationRow &row);
    void operator()(const SegmentRow &row);
    void operator()(const MetricRow &row);
    void operator()(const EventRow &row);
    void operator()(const FlushRow &row);

private:
    template <typename... Values>
    void run(const Values &...values);

    SQLite::Database &m_database;
    std::string m_table;
    std::optional<SQLite::Statement> m_statement;
};

} // namespace shardscope::store
