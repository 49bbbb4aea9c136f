// SPDX-License-Identifier: Apache-2.0
// One struct for each table of schema.sql, as the Writer takes them. Ids are the caller's, local to the file, and begin
// at 1. Times are CLOCK_REALTIME nanoseconds; an end is a start plus a duration by the monotonic clock. An empty
// optional is NULL: not measured.
#pragma once

#include "core/base/names.h"
#include "profiler/store/interval_sums.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::store {

/// `user_version` of the databases: a reader takes older and equal ones and refuses newer.
inline constexpr int kSchemaVersion = 1;
/// `application_id` of the databases: "SHSC".
inline constexpr int32_t kApplicationId = 0x53485343;

struct MetaRow
{
    int64_t processId = 1;
    std::string key; ///< origin_ns, schema_version, version, model_flops_per_token, source, …
    std::string value;
};

struct ProcessRow
{
    int64_t processId = 1;
    int64_t attempt = 1;
    std::optional<int64_t> rank; ///< empty: the supervisor
    std::optional<int64_t> localRank;
    std::optional<int64_t> worldSize;
    std::string host;
    int64_t pid = 0;
    int64_t parentPid = 0;
    std::string command;
    int64_t startedNs = 0;
    std::optional<int64_t> endedNs;
    std::optional<int64_t> exitCode;
    std::optional<int64_t> signal;
};

struct ClockRow
{
    int64_t processId = 1;
    int64_t timeNs = 0;      ///< CLOCK_REALTIME
    int64_t monotonicNs = 0; ///< CLOCK_MONOTONIC at the same moment
    int64_t offsetNs = 0;    ///< to be added to this machine's times to get the first machine's
    int64_t uncertaintyNs = 0;
};

struct DeviceRow
{
    int64_t deviceId = 0;
    int64_t processId = 1;
    std::string uuid;
    std::string pci;
    int64_t ordinal = 0;
    DeviceKind kind = DeviceKind::Cpu;
    std::string name;
    int64_t memoryBytes = 0;
    std::optional<double> peakFlops; ///< dense, of the compute dtype
};

struct LaneRow
{
    int64_t laneId = 0;
    int64_t processId = 1;
    std::optional<int64_t> deviceId;
    LaneKind kind = LaneKind::Thread;
    int64_t nativeId = 0; ///< thread id, CUDA stream id
    std::optional<int64_t> contextId;
    std::string name;
    int64_t sortOrder = 0;
};

struct UnitRow
{
    int64_t unitId = 0;
    int64_t processId = 1;
    std::string name;
    std::optional<int64_t> parentUnitId; ///< the unit whose bucket this is
    UnitKind kind = UnitKind::Other;
    int64_t ordinal = 0;
    int64_t parameters = 0;
    int64_t parameterBytes = 0;
    int64_t shardBytes = 0;
    int64_t paddingBytes = 0;
};

struct ConfigRow
{
    int64_t configId = 0;
    int64_t processId = 1;
    int64_t firstStep = 0;
    std::string changedJson = "{}";
    std::string fullJson;
    std::string origin = "start"; ///< start, user, undo, sweep
    int64_t requestedNs = 0;
};

/// A step; put() it when it begins and again when it ends.
struct StepRow
{
    int64_t stepId = 0;
    int64_t processId = 1;
    int64_t number = 0;
    std::optional<int64_t> configId;
    RecordLevel level = RecordLevel::Light;
    int64_t startNs = 0;
    std::optional<int64_t> endNs;
    std::optional<double> loss;
    std::optional<double> gradientNorm;
    std::optional<double> validationLoss;
    std::optional<double> learningRate;
    std::optional<int64_t> tokens;
    std::optional<StepState> state; ///< empty while it runs
    std::optional<StepSums> sums;   ///< interval_sums.h; empty at level off
    std::optional<int64_t> peakAllocatedBytes;
};

/// A span is known by (laneId, startNs, spanId): added again (an open one that has ended), it replaces itself.
struct SpanRow
{
    int64_t laneId = 0;
    int64_t startNs = 0;
    int64_t spanId = 0;
    std::optional<int64_t> durationNs; ///< empty: still open
    int64_t nameId = 0;                ///< Writer::nameId()
    SpanCategory category = SpanCategory::Compute;
    std::optional<Phase> phase; ///< empty: unknown (imported recordings)
    std::optional<int64_t> stepId;
    std::optional<int64_t> unitId;
    std::optional<int64_t> collectiveId;
    std::optional<int64_t> correlation;
    std::optional<int64_t> bytes;
};

struct KernelRow
{
    int64_t spanId = 0;
    int64_t laneId = 0;
    int64_t startNs = 0;
    std::array<int32_t, 3> grid{};
    std::array<int32_t, 3> block{};
    int64_t registers = 0;
    int64_t sharedBytes = 0;
    std::optional<int64_t> graphId;
};

struct CommunicatorRow
{
    int64_t communicatorId = 0;
    int64_t processId = 1;
    std::string uid; ///< equal on all its ranks, new for each attempt
    std::string backend;
    int64_t size = 0;
    int64_t rankIn = 0;
    std::string membersJson; ///< global ranks
};

/// A collective call; put() it when enqueued and again when more is known.
struct CollectiveRow
{
    int64_t collectiveId = 0;
    int64_t communicatorId = 0;
    int64_t sequence = 0;
    Operation operation = Operation::AllGather;
    std::optional<int64_t> unitId;
    std::optional<int64_t> stepId;
    std::optional<Phase> phase;
    std::string dtype;
    int64_t inputBytes = 0;
    int64_t outputBytes = 0;
    std::optional<int64_t> peer;
    std::optional<int64_t> groupId;
    int64_t enqueuedNs = 0;
    std::optional<int64_t> startedNs;
    std::optional<int64_t> endedNs;
    std::optional<int64_t> waitNs; ///< until the last rank arrived, where this rank knows; else the reader's join tells
    std::string algorithm;         ///< "": NULL
    std::optional<int64_t> channels;
};

/// Bytes by category at a moment. The categories and roundingBytes sum to allocatedBytes; with pendingFreeBytes to
/// activeBytes.
struct MemoryRow
{
    int64_t memoryId = 0;
    int64_t processId = 1;
    std::string place = "device"; ///< device, pinned, host, nvme
    std::optional<int64_t> deviceId;
    int64_t timeNs = 0;
    std::optional<int64_t> stepId;
    bool isStepPeak = false;
    std::array<int64_t, kMemoryCategories> categoryBytes{}; ///< in the order of MemoryCategory
    int64_t roundingBytes = 0;
    int64_t pendingFreeBytes = 0;
    int64_t allocatedBytes = 0;
    int64_t activeBytes = 0;
    int64_t reservedBytes = 0;
    std::optional<int64_t> processUsedBytes;
    std::optional<int64_t> deviceUsedBytes;
};

/// What one unit held of one category in the sample memoryId, a step's peak.
struct MemoryPeakRow
{
    int64_t memoryId = 0;
    int64_t processId = 1;
    std::optional<int64_t> unitId;
    MemoryCategory category = MemoryCategory::Other;
    int64_t bytes = 0;
};

struct AllocationRow
{
    int64_t processId = 1;
    std::string place = "device";
    std::optional<int64_t> deviceId;
    int64_t address = 0;
    int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::Other;
    std::optional<int64_t> unitId;
    int64_t allocatedNs = 0;
    std::optional<int64_t> freedNs;
};

struct SegmentRow
{
    int64_t processId = 1;
    int64_t deviceId = 0;
    int64_t timeNs = 0;
    int64_t address = 0;
    int64_t bytes = 0;
    std::string blocksJson;
};

struct MetricRow
{
    int64_t processId = 1;
    std::optional<int64_t> deviceId;
    int64_t timeNs = 0;
    int64_t nameId = 0;
    double value = 0;
};

struct EventRow
{
    int64_t processId = 1;
    std::optional<int64_t> deviceId;
    int64_t timeNs = 0;
    std::optional<int64_t> stepId;
    EventKind kind = EventKind::Warning;
    std::string text;
    std::string detailJson; ///< an object; "": NULL
};

/// One commit. firstStartNs and lastEndNs cover the commit's spans and collectives: a live reader reads again from
/// there.
struct FlushRow
{
    int64_t flushId = 0;
    int64_t processId = 1;
    int64_t writtenNs = 0;
    std::optional<int64_t> firstStartNs;
    std::optional<int64_t> lastEndNs;
    int64_t spans = 0;
    int64_t droppedRecords = 0;
};

} // namespace shardscope::store
