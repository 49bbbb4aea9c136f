// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/insert.h"

#include <fmt/format.h>

#include <type_traits>

namespace shardscope::store {
namespace {

std::string insertSql(const std::string &table, size_t columns)
{
    std::string sql = fmt::format("INSERT OR REPLACE INTO {} VALUES (?", table);
    for (size_t i = 1; i < columns; ++i)
        sql += ", ?";
    return sql + ")";
}

void bindValue(SQLite::Statement &statement, int index, int64_t value)
{
    statement.bind(index, value);
}
void bindValue(SQLite::Statement &statement, int index, double value)
{
    statement.bind(index, value);
}
void bindValue(SQLite::Statement &statement, int index, const std::string &value)
{
    statement.bindNoCopy(index, value);
}
/// The names' texts are literals, so they end with a zero.
template <typename E>
requires std::is_enum_v<E>
void bindValue(SQLite::Statement &statement, int index, E value)
{
    statement.bindNoCopy(index, toText(value).data());
}
template <typename T>
void bindValue(SQLite::Statement &statement, int index, const std::optional<T> &value)
{
    if (value)
        bindValue(statement, index, *value);
    else
        statement.bind(index);
}

/// An empty text is NULL.
const std::string *textOrNull(const std::string &text)
{
    return text.empty() ? nullptr : &text;
}
void bindValue(SQLite::Statement &statement, int index, const std::string *value)
{
    if (value)
        statement.bindNoCopy(index, *value);
    else
        statement.bind(index);
}

std::string joined(const std::array<int32_t, 3> &sizes)
{
    return fmt::format("{},{},{}", sizes[0], sizes[1], sizes[2]);
}

} // namespace

Insert::Insert(SQLite::Database &database, std::string table)
    : m_database(database)
    , m_table(std::move(table))
{
}

template <typename... Values>
void Insert::run(const Values &...values)
{
    if (!m_statement)
        m_statement.emplace(m_database, insertSql(m_table, sizeof...(values)));
    // A statement that failed (a full disk) has to be reset before it is bound again.
    m_statement->tryReset();
    int index = 0;
    (bindValue(*m_statement, ++index, values), ...);
    m_statement->exec();
}

void Insert::operator()(const MetaRow &row)
{
    run(row.processId, row.key, row.value);
}

void Insert::operator()(const ProcessRow &row)
{
    run(row.processId, row.attempt, row.rank, row.localRank, row.worldSize, row.host, row.pid, row.parentPid,
        row.command, row.startedNs, row.endedNs, row.exitCode, row.signal);
}

void Insert::operator()(const ClockRow &row)
{
    run(row.processId, row.timeNs, row.monotonicNs, row.offsetNs, row.uncertaintyNs);
}

void Insert::operator()(const DeviceRow &row)
{
    run(row.deviceId, row.processId, row.uuid, row.pci, row.ordinal, row.kind, row.name, row.memoryBytes,
        row.peakFlops);
}

void Insert::operator()(const LaneRow &row)
{
    run(row.laneId, row.processId, row.deviceId, row.kind, row.nativeId, row.contextId, row.name, row.sortOrder);
}

void Insert::operator()(const NameRow &row)
{
    run(row.nameId, row.text);
}

void Insert::operator()(const UnitRow &row)
{
    run(row.unitId, row.processId, row.name, row.parentUnitId, row.kind, row.ordinal, row.parameters,
        row.parameterBytes, row.shardBytes, row.paddingBytes);
}

void Insert::operator()(const ConfigRow &row)
{
    run(row.configId, row.processId, row.firstStep, row.changedJson, row.fullJson, row.origin, row.requestedNs);
}

void Insert::operator()(const StoredStep &step)
{
    const StepRow &row = step.row;
    const auto sum = [&](int64_t StepSums::*member) {
        return row.sums ? std::optional<int64_t>((*row.sums).*member) : std::nullopt;
    };
    run(row.stepId, row.processId, row.number, row.configId, row.level, row.startNs, row.endNs, row.loss,
        row.gradientNorm, row.validationLoss, row.learningRate, row.tokens, row.state, sum(&StepSums::wallNs),
        sum(&StepSums::computeNs), sum(&StepSums::communicationNs), sum(&StepSums::overlappedCommunicationNs),
        sum(&StepSums::exposedCommunicationNs), sum(&StepSums::copyNs), sum(&StepSums::exposedCopyNs),
        sum(&StepSums::idleNs), sum(&StepSums::exposedAllGatherNs), sum(&StepSums::exposedReduceScatterNs),
        sum(&StepSums::exposedAllReduceNs), sum(&StepSums::exposedOtherCommunicationNs), sum(&StepSums::optimizerNs),
        sum(&StepSums::idleHostNs), sum(&StepSums::idlePeerNs), sum(&StepSums::idleOtherNs), row.peakAllocatedBytes,
        int64_t{step.spansKept});
}

void Insert::operator()(const SpanRow &row)
{
    run(row.laneId, row.startNs, row.spanId, row.durationNs, row.nameId, row.category, row.phase, row.stepId,
        row.unitId, row.collectiveId, row.correlation, row.bytes);
}

void Insert::operator()(const KernelRow &row)
{
    const std::string grid = joined(row.grid);
    const std::string block = joined(row.block);
    run(row.spanId, row.laneId, row.startNs, grid, block, row.registers, row.sharedBytes, row.graphId);
}

void Insert::operator()(const CommunicatorRow &row)
{
    run(row.communicatorId, row.processId, row.uid, row.backend, row.size, row.rankIn, row.membersJson);
}

void Insert::operator()(const CollectiveRow &row)
{
    run(row.collectiveId, row.communicatorId, row.sequence, row.operation, row.unitId, row.stepId, row.phase, row.dtype,
        row.inputBytes, row.outputBytes, row.peer, row.groupId, row.enqueuedNs, row.startedNs, row.endedNs, row.waitNs,
        textOrNull(row.algorithm), row.channels);
}

void Insert::operator()(const MemoryRow &row)
{
    static_assert(kMemoryCategories == 9, "a category is a column of the table memory");
    const auto &bytes = row.categoryBytes;
    run(row.memoryId, row.processId, row.place, row.deviceId, row.timeNs, row.stepId, int64_t{row.isStepPeak}, bytes[0],
        bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], row.roundingBytes,
        row.pendingFreeBytes, row.allocatedBytes, row.activeBytes, row.reservedBytes, row.processUsedBytes,
        row.deviceUsedBytes);
}

void Insert::operator()(const MemoryPeakRow &row)
{
    run(row.memoryId, row.processId, row.unitId, row.category, row.bytes);
}

void Insert::operator()(const AllocationRow &row)
{
    run(row.processId, row.place, row.deviceId, row.address, row.bytes, row.category, row.unitId, row.allocatedNs,
        row.freedNs);
}

void Insert::operator()(const SegmentRow &row)
{
    run(row.processId, row.deviceId, row.timeNs, row.address, row.bytes, row.blocksJson);
}

void Insert::operator()(const MetricRow &row)
{
    run(row.processId, row.deviceId, row.timeNs, row.nameId, row.value);
}

void Insert::operator()(const EventRow &row)
{
    run(row.processId, row.deviceId, row.timeNs, row.stepId, row.kind, row.text, textOrNull(row.detailJson));
}

void Insert::operator()(const FlushRow &row)
{
    run(row.flushId, row.processId, row.writtenNs, row.firstStartNs, row.lastEndNs, row.spans, row.droppedRecords);
}

} // namespace shardscope::store
