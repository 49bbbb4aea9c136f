// SPDX-License-Identifier: Apache-2.0
// What a Writer holds between two commits, and the statements that write it.
#pragma once

#include "profiler/store/insert.h"

#include <vector>

namespace shardscope::store {

/// Rows that later rows refer to: they stay here until a commit has succeeded.
struct LastingRows
{
    std::vector<MetaRow> meta;
    std::vector<ProcessRow> processes;
    std::vector<DeviceRow> devices;
    std::vector<LaneRow> lanes;
    std::vector<NameRow> names;
    std::vector<UnitRow> units;
    std::vector<ConfigRow> configs;
    std::vector<StepRow> steps;
    std::vector<CommunicatorRow> communicators;
    std::vector<EventRow> events;
};

/// Rows that come in numbers: given up when a commit fails.
struct BulkRows
{
    std::vector<SpanRow> spans;
    std::vector<KernelRow> kernels;
    std::vector<CollectiveRow> collectives;
    std::vector<MemoryRow> memory;
    std::vector<MemoryPeakRow> memoryPeaks;
    std::vector<AllocationRow> allocations;
    std::vector<SegmentRow> segments;
    std::vector<MetricRow> metrics;
    std::vector<ClockRow> clocks;

    int64_t count() const
    {
        return static_cast<int64_t>(spans.size() + kernels.size() + collectives.size() + memory.size() +
                                    memoryPeaks.size() + allocations.size() + segments.size() + metrics.size() +
                                    clocks.size());
    }
};

struct Inserts
{
    explicit Inserts(SQLite::Database &database)
        : meta(database, "meta")
        , process(database, "process")
        , clock(database, "clock")
        , device(database, "device")
        , lane(database, "lane")
        , name(database, "name")
        , unit(database, "unit")
        , config(database, "config")
        , step(database, "step")
        , span(database, "span")
        , kernel(database, "kernel")
        , communicator(database, "communicator")
        , collective(database, "collective")
        , memory(database, "memory")
        , memoryPeak(database, "memory_peak")
        , allocation(database, "allocation")
        , segment(database, "segment")
        , metric(database, "metric")
        , event(database, "event")
        , flush(database, "flush")
    {
    }
    Insert meta, process, clock, device, lane, name, unit, config, step, span, kernel, communicator, collective, memory,
        memoryPeak, allocation, segment, metric, event, flush;
};

} // namespace shardscope::store
