// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/limits.h"
#include "profiler/store/query.h"
#include "profiler/store/readers.h"
#include "profiler/store/recording.h"

#include <algorithm>
#include <limits>

namespace shardscope::store {
namespace {

CallKey keyOf(const CommunicatorEntry &communicator, int64_t sequence, std::optional<int64_t> peer)
{
    if (!peer)
        return {communicator.uid, sequence, -1, -1};
    return {communicator.uid, sequence, std::min(communicator.rankIn, *peer), std::max(communicator.rankIn, *peer)};
}

/// Send and recv are two ends of one thing.
bool sameOperation(Operation a, Operation b)
{
    const auto pointToPoint = [](Operation o) { return o == Operation::Send || o == Operation::Recv; };
    return a == b || (pointToPoint(a) && pointToPoint(b));
}

std::optional<int64_t> sinceOrigin(std::optional<int64_t> epochNs, int64_t originNs)
{
    return epochNs ? std::optional<int64_t>(*epochNs - originNs) : std::nullopt;
}

void addPart(const Query &query, const SourceFile &file, const Catalog &catalog, CallTable &table)
{
    const Index communicatorIndex = find(file.communicators, query.integer(1));
    if (communicatorIndex == kNone)
        return; // committed after the last refresh()
    const CommunicatorEntry &communicator = catalog.communicators[static_cast<size_t>(communicatorIndex)];
    const auto operation = query.word(3, Operation::AllGather);
    const auto peer = query.optionalInteger(9);
    const auto [found, added] =
        table.positions.try_emplace(keyOf(communicator, query.integer(2), peer), table.calls.size());
    if (added) {
        CollectiveCall call;
        call.attempt = catalog.processes[static_cast<size_t>(communicator.process)].attempt;
        call.communicator = communicator.uid;
        call.size = peer ? 2 : communicator.size;
        call.sequence = query.integer(2);
        call.operation = operation;
        call.phase = query.optionalWord<Phase>(6);
        if (const int32_t step = file.stepNumber(query.optionalInteger(5)); step >= 0)
            call.step = step;
        call.dtype = query.string(7);
        call.inputBytes = query.integer(8);
        call.outputBytes = query.integer(10);
        if (const Index unit = find(file.units, query.optionalInteger(4)); unit != kNone)
            call.unit = catalog.units[static_cast<size_t>(unit)].name;
        table.calls.push_back(std::move(call));
    }
    CollectiveCall &call = table.calls[found->second];
    call.operationsAgree = call.operationsAgree && sameOperation(call.operation, operation);
    call.parts.push_back({.process = communicator.process,
                          .collectiveId = query.integer(0),
                          .unit = find(file.units, query.optionalInteger(4)),
                          .enqueuedNs = query.integer(11) - catalog.originNs,
                          .startedNs = sinceOrigin(query.optionalInteger(12), catalog.originNs),
                          .endedNs = sinceOrigin(query.optionalInteger(13), catalog.originNs),
                          .waitNs = query.optionalInteger(14)});
}

void fillWaits(CollectiveCall &call)
{
    const auto lastStartNs = call.lastStartNs();
    if (!lastStartNs)
        return;
    for (CollectivePart &part : call.parts) {
        const int64_t endedNs = part.endedNs.value_or(*lastStartNs);
        part.waitNs =
            std::clamp<int64_t>(*lastStartNs - *part.startedNs, 0, std::max<int64_t>(endedNs - *part.startedNs, 0));
    }
}

} // namespace

std::optional<int64_t> CollectiveCall::lastStartNs() const
{
    if (static_cast<int64_t>(parts.size()) < size)
        return std::nullopt;
    int64_t last = std::numeric_limits<int64_t>::min();
    for (const CollectivePart &part : parts) {
        if (!part.startedNs)
            return std::nullopt;
        last = std::max(last, *part.startedNs);
    }
    return last;
}

std::optional<int64_t> CollectiveCall::transferNs() const
{
    const auto lastStart = lastStartNs();
    if (!lastStart)
        return std::nullopt;
    int64_t last = *lastStart;
    for (const CollectivePart &part : parts) {
        if (!part.endedNs)
            return std::nullopt;
        last = std::max(last, *part.endedNs);
    }
    return last - *lastStart;
}

void readCollectives(SourceFile &file, const Catalog &catalog, EpochRange range, const CancelToken &cancel,
                     CallTable &table)
{
    DatabaseFile::Access access(file.database, &cancel);
    SQLite::Database &database = access.database();
    file.readStepNumbers(database);
    Query query(database, "SELECT collective_id, communicator_id, sequence, operation, unit_id, step_id, phase, dtype, "
                          "input_bytes, peer, output_bytes, enqueued_ns, started_ns, ended_ns, wait_ns FROM collective "
                          "WHERE (enqueued_ns, collective_id) > (?, ?) AND enqueued_ns < ? ORDER BY enqueued_ns, "
                          "collective_id LIMIT ?");
    int64_t enqueuedNs = range.fromNs;
    int64_t collectiveId = std::numeric_limits<int64_t>::min();
    for (int64_t rows = kChunkRows; rows == kChunkRows;) {
        throwIfCancelled(cancel);
        rows = 0;
        query.bind(enqueuedNs, collectiveId, range.toNs, kChunkRows);
        while (query.next()) {
            ++rows;
            collectiveId = query.integer(0);
            enqueuedNs = query.integer(11);
            addPart(query, file, catalog, table);
        }
    }
}

std::vector<CollectiveCall> finishCollectives(CallTable table, int64_t fromNs, int64_t toNs)
{
    std::erase_if(table.calls, [&](const CollectiveCall &call) {
        return std::none_of(call.parts.begin(), call.parts.end(), [&](const CollectivePart &part) {
            return part.enqueuedNs >= fromNs && part.enqueuedNs < toNs;
        });
    });
    for (CollectiveCall &call : table.calls) {
        std::sort(call.parts.begin(), call.parts.end(),
                  [](const CollectivePart &a, const CollectivePart &b) { return a.process < b.process; });
        fillWaits(call);
    }
    const auto firstNs = [](const CollectiveCall &call) {
        int64_t first = call.parts.front().enqueuedNs;
        for (const CollectivePart &part : call.parts)
            first = std::min(first, part.enqueuedNs);
        return first;
    };
    std::stable_sort(table.calls.begin(), table.calls.end(),
                     [&](const CollectiveCall &a, const CollectiveCall &b) { return firstNs(a) < firstNs(b); });
    return std::move(table.calls);
}

} // namespace shardscope::store
