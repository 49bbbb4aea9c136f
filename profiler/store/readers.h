// SPDX-License-Identifier: Apache-2.0
// The reads behind Recording, for one file each. All throw SQLite::Exception; a cancelled read throws the one of
// SQLITE_INTERRUPT. Each reads in chunks, and every chunk is a transaction of its own, well under 200 ms.
#pragma once

#include "profiler/store/cancel.h"
#include "profiler/store/source_file.h"

#include <map>
#include <tuple>
#include <vector>

namespace shardscope::store {

/// Epoch times of a range [fromNs, toNs).
struct EpochRange
{
    int64_t fromNs = 0;
    int64_t toNs = 0;
};
/// Since the origin → epoch, kBeginning and kEnd kept.
EpochRange toEpoch(const Catalog &catalog, int64_t fromNs, int64_t toNs);

void throwIfCancelled(const CancelToken &cancel);

/// overlapping: spans that began before the range and reach into it too.
SpanColumns readSpans(SourceFile &file, const Catalog &catalog, Index lane, EpochRange range, bool overlapping,
                      const CancelToken &cancel);

/// Who calls what with whom: joins the ranks' parts of a call. For send and recv the pair of ranks belongs to it.
using CallKey = std::tuple<std::string, int64_t, int64_t, int64_t>; ///< uid, sequence, lower rank, upper rank
struct CallTable
{
    std::vector<CollectiveCall> calls;
    std::map<CallKey, size_t> positions;
};
void readCollectives(SourceFile &file, const Catalog &catalog, EpochRange range, const CancelToken &cancel,
                     CallTable &table);
/// Sorts, fills in the waits, and leaves out calls without a part in [fromNs, toNs) (since the origin).
std::vector<CollectiveCall> finishCollectives(CallTable table, int64_t fromNs, int64_t toNs);

std::vector<MemoryColumns> readMemory(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                      EpochRange range, const CancelToken &cancel);
std::optional<MemoryPeak> readMemoryPeak(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                         std::optional<int64_t> stepNumber);

std::vector<StepInfo> readSteps(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                int64_t fromNumber);
void readEvents(SourceFile &file, const Catalog &catalog, const EventPosition &after, std::vector<EventInfo> &events);
std::vector<MetricSeries> readMetrics(SourceFile &file, const Catalog &catalog, Index process, int64_t processId,
                                      int64_t fromEpochNs, const CancelToken &cancel);
Tail readTail(SourceFile &file, const Catalog &catalog, Index process, int64_t processId, int64_t seenFlushId);

} // namespace shardscope::store
