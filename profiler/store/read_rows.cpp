// SPDX-License-Identifier: Apache-2.0
// Steps, events, metrics and flushes: a row is an entry.
#include "profiler/store/limits.h"
#include "profiler/store/query.h"
#include "profiler/store/readers.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <map>

namespace shardscope::store {
namespace {

std::optional<StepSums> sumsOf(const Query &query, int column)
{
    if (query.isNull(column))
        return std::nullopt;
    StepSums sums;
    // In the order of the table's columns.
    for (int64_t StepSums::*member :
         {&StepSums::wallNs, &StepSums::computeNs, &StepSums::communicationNs, &StepSums::overlappedCommunicationNs,
          &StepSums::exposedCommunicationNs, &StepSums::copyNs, &StepSums::exposedCopyNs, &StepSums::idleNs,
          &StepSums::exposedAllGatherNs, &StepSums::exposedReduceScatterNs, &StepSums::exposedAllReduceNs,
          &StepSums::exposedOtherCommunicationNs, &StepSums::optimizerNs, &StepSums::idleHostNs, &StepSums::idlePeerNs,
          &StepSums::idleOtherNs})
        sums.*member = query.integer(column++);
    return sums;
}

} // namespace

std::vector<StepInfo> readSteps(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                int64_t fromNumber)
{
    DatabaseFile::Access access(file.database, nullptr);
    Query query(access.database(),
                "SELECT step_id, number, config_id, level, start_ns, end_ns, loss, gradient_norm, validation_loss, "
                "learning_rate, tokens, state, peak_allocated_bytes, spans_kept, wall_ns, compute_ns, "
                "communication_ns, overlapped_communication_ns, exposed_communication_ns, copy_ns, exposed_copy_ns, "
                "idle_ns, exposed_all_gather_ns, exposed_reduce_scatter_ns, exposed_all_reduce_ns, "
                "exposed_other_communication_ns, optimizer_ns, idle_host_ns, idle_peer_ns, idle_other_ns FROM step "
                "WHERE process_id = ? AND number >= ? ORDER BY number");
    query.bind(processId, fromNumber);
    std::vector<StepInfo> steps;
    while (query.next()) {
        StepInfo step;
        step.process = process;
        step.stepId = query.integer(0);
        step.number = query.integer(1);
        step.config = find(file.configs, query.optionalInteger(2));
        step.level = query.word(3, RecordLevel::Light);
        step.startNs = query.integer(4) - catalog.originNs;
        if (!query.isNull(5))
            step.endNs = query.integer(5) - catalog.originNs;
        step.loss = query.optionalReal(6);
        step.gradientNorm = query.optionalReal(7);
        step.validationLoss = query.optionalReal(8);
        step.learningRate = query.optionalReal(9);
        step.tokens = query.optionalInteger(10);
        step.state = query.optionalWord<StepState>(11);
        step.peakAllocatedBytes = query.optionalInteger(12);
        step.spansKept = query.integer(13) != 0;
        step.sums = sumsOf(query, 14);
        steps.push_back(std::move(step));
    }
    return steps;
}

static int64_t rowAfter(const EventPosition &after, Index process)
{
    const auto seen = after.find(process);
    return seen == after.end() ? 0 : seen->second;
}

/// A supervisor's database has no steps: its events say theirs in detail_json.
static std::optional<int64_t> stepInDetail(const std::string &detailJson)
{
    const auto detail = nlohmann::json::parse(detailJson, nullptr, false);
    const auto step = detail.is_object() ? detail.find("step") : detail.end();
    return step != detail.end() && step->is_number_integer() ? std::optional(step->get<int64_t>()) : std::nullopt;
}

void readEvents(SourceFile &file, const Catalog &catalog, const EventPosition &after, std::vector<EventInfo> &events)
{
    int64_t firstRow = file.processes.empty() ? 0 : std::numeric_limits<int64_t>::max();
    for (const auto &[id, process] : file.processes)
        firstRow = std::min(firstRow, rowAfter(after, process));
    DatabaseFile::Access access(file.database, nullptr);
    file.readStepNumbers(access.database());
    Query query(access.database(), "SELECT process_id, device_id, time_ns, step_id, kind, text, detail_json, rowid "
                                   "FROM event WHERE rowid > ? ORDER BY rowid");
    query.bind(firstRow);
    while (query.next()) {
        EventInfo event;
        event.process = find(file.processes, query.integer(0));
        event.device = find(file.devices, query.optionalInteger(1));
        event.timeNs = query.integer(2) - catalog.originNs;
        if (const int32_t step = file.stepNumber(query.optionalInteger(3)); step >= 0)
            event.step = step;
        event.kind = query.word(4, EventKind::Warning);
        event.text = query.string(5);
        event.detailJson = query.string(6);
        if (!event.step)
            event.step = stepInDetail(event.detailJson);
        event.row = query.integer(7);
        if (event.row > rowAfter(after, event.process))
            events.push_back(std::move(event));
    }
}

std::vector<MetricSeries> readMetrics(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                      int64_t fromEpochNs, const CancelToken &cancel)
{
    DatabaseFile::Access access(file.database, &cancel);
    std::map<std::pair<Index, int64_t>, MetricSeries> series;
    Query query(access.database(), "SELECT m.rowid, m.device_id, m.time_ns, m.name_id, m.value, n.text FROM metric m "
                                   "JOIN name n USING (name_id) WHERE (m.time_ns, m.rowid) > (?, ?) AND "
                                   "m.process_id = ? ORDER BY m.time_ns, m.rowid LIMIT ?");
    int64_t timeNs = fromEpochNs;
    int64_t rowId = std::numeric_limits<int64_t>::min();
    for (int64_t rows = kChunkRows; rows == kChunkRows;) {
        throwIfCancelled(cancel);
        rows = 0;
        query.bind(timeNs, rowId, processId, kChunkRows);
        while (query.next()) {
            ++rows;
            rowId = query.integer(0);
            timeNs = query.integer(2);
            const Index device = find(file.devices, query.optionalInteger(1));
            MetricSeries &one = series[{device, query.integer(3)}];
            if (one.timeNs.empty()) {
                one.process = process;
                one.device = device;
                one.name = query.string(5);
            }
            one.timeNs.push_back(timeNs - catalog.originNs);
            one.value.push_back(query.real(4));
        }
    }
    std::vector<MetricSeries> result;
    for (auto &[key, one] : series)
        result.push_back(std::move(one));
    return result;
}

Tail readTail(SourceFile &file, const Catalog &catalog, Index process, int64_t processId, int64_t seenFlushId)
{
    DatabaseFile::Access access(file.database, nullptr);
    Query query(access.database(), "SELECT max(flush_id), min(first_start_ns), max(last_end_ns), sum(spans), "
                                   "sum(dropped_records) FROM flush WHERE flush_id > ? AND process_id = ?");
    query.bind(seenFlushId, processId);
    Tail tail;
    tail.process = process;
    tail.lastFlushId = seenFlushId;
    if (!query.next() || query.isNull(0))
        return tail;
    tail.changed = true;
    tail.lastFlushId = query.integer(0);
    if (!query.isNull(1))
        tail.firstStartNs = query.integer(1) - catalog.originNs;
    if (!query.isNull(2))
        tail.lastEndNs = query.integer(2) - catalog.originNs;
    tail.spans = query.integer(3);
    tail.droppedRecords = query.integer(4);
    return tail;
}

} // namespace shardscope::store
