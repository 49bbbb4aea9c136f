// SPDX-License-Identifier: Apache-2.0
// What a Recording hands out: plain values that never change once handed over. Ids of the files are local to a file;
// here things of all files stand in one list each, and an index into it names them. An index stays what it is for as
// long as the Recording lives: lists only grow. All times are nanoseconds since Catalog::originNs.
#pragma once

#include "core/base/names.h"
#include "profiler/store/rows.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::store {

/// Position in a list of the Catalog; kNone where there is none.
using Index = int32_t;
inline constexpr Index kNone = -1;

struct ProcessInfo
{
    std::filesystem::path file; ///< the database it is in
    int64_t attempt = 1;
    std::optional<int64_t> rank; ///< empty: the supervisor
    std::optional<int64_t> localRank;
    std::optional<int64_t> worldSize;
    std::string host;
    int64_t pid = 0;
    std::string command;
    int64_t startedNs = 0;
    std::optional<int64_t> endedNs; ///< empty: it runs, or was killed
    std::optional<int64_t> exitCode;
    std::optional<int64_t> signal; ///< from the supervisor where the process itself could not say
    std::map<std::string, std::string> meta;
    std::optional<double> modelFlopsPerToken;
    int64_t clockUncertaintyNs = 0;
    int64_t droppedRecords = 0;
    int64_t spansWritten = 0;
};

struct DeviceInfo
{
    Index process = kNone;
    std::string uuid;
    std::string pci;
    int64_t ordinal = 0;
    DeviceKind kind = DeviceKind::Cpu;
    std::string name;
    int64_t memoryBytes = 0;
    std::optional<double> peakFlops;
};

struct LaneInfo
{
    Index process = kNone;
    Index device = kNone;
    LaneKind kind = LaneKind::Thread;
    int64_t laneId = 0; ///< in its file, for SQL
    int64_t nativeId = 0;
    std::string name;
    int64_t sortOrder = 0;
};

struct UnitEntry
{
    Index process = kNone;
    Index parent = kNone;
    std::string name;
    UnitKind kind = UnitKind::Other;
    int64_t ordinal = 0;
    int64_t parameters = 0;
    int64_t parameterBytes = 0;
    int64_t shardBytes = 0;
    int64_t paddingBytes = 0;
};

struct CommunicatorEntry
{
    Index process = kNone;
    std::string uid;
    std::string backend;
    int64_t size = 0;
    int64_t rankIn = 0;
    std::string membersJson;
};

struct ConfigInfo
{
    Index process = kNone;
    int64_t configId = 0; ///< in its file
    int64_t firstStep = 0;
    std::string changedJson;
    std::string fullJson;
    std::string origin;
    int64_t requestedNs = 0;
};

struct AttemptInfo
{
    int64_t attempt = 1;
    int64_t worldSize = 0;             ///< 0: no rank has written anything yet
    std::vector<int64_t> missingRanks; ///< no readable database
    std::vector<Index> ranks;          ///< processes, by rank
    Index supervisor = kNone;
    std::string endReason; ///< "done", "running", "rank 1 was killed by signal 9 (SIGKILL)", …
};

/// All that is small. Replaced as a whole by Recording::refresh().
struct Catalog
{
    std::filesystem::path path; ///< what was opened
    int64_t originNs = 0;       ///< epoch time of 0
    std::string source = "shardscope";
    bool finished = false; ///< every rank of the newest attempt has ended: nothing will be added but by a resume
    bool complete = false; ///< finished, no rank is missing, no record was dropped
    std::vector<ProcessInfo> processes;
    std::vector<DeviceInfo> devices;
    std::vector<LaneInfo> lanes;
    std::vector<std::string> names;
    std::vector<UnitEntry> units;
    std::vector<CommunicatorEntry> communicators;
    std::vector<ConfigInfo> configs;
    std::vector<AttemptInfo> attempts; ///< ascending
    std::vector<std::string> problems; ///< what could not be read, for a user to see

    /// The process of a rank; kNone where it is missing.
    Index rankProcess(int64_t attempt, int64_t rank) const;
    /// What is in force, or was last: as the first rank of the newest attempt recorded it; nullptr where it has not
    /// yet.
    const ConfigInfo *lastConfig() const;
};

struct StepInfo
{
    Index process = kNone;
    int64_t stepId = 0; ///< in its file
    int64_t number = 0;
    Index config = kNone;
    RecordLevel level = RecordLevel::Light;
    int64_t startNs = 0;
    std::optional<int64_t> endNs; ///< empty: it runs
    std::optional<double> loss;
    std::optional<double> gradientNorm;
    std::optional<double> validationLoss;
    std::optional<double> learningRate;
    std::optional<int64_t> tokens; ///< of this rank
    std::optional<StepState> state;
    std::optional<StepSums> sums;
    std::optional<int64_t> peakAllocatedBytes;
    bool spansKept = true;
};

/// Spans as columns, ordered by (start, span id) within one lane. All columns are equally long.
struct SpanColumns
{
    Index lane = kNone;
    std::vector<int64_t> startNs;
    std::vector<int64_t> durationNs; ///< −1: still open
    std::vector<int64_t> spanId;     ///< in its file
    std::vector<Index> name;
    std::vector<SpanCategory> category;
    std::vector<int8_t> phase; ///< of Phase; −1: unknown
    std::vector<int32_t> step; ///< its number; −1: none
    std::vector<Index> unit;
    std::vector<int64_t> collectiveId; ///< in its file; −1: none. See CollectivePart.
    std::vector<int64_t> bytes;        ///< −1: not measured

    size_t size() const { return startNs.size(); }
};

/// One rank's part of a collective call.
struct CollectivePart
{
    Index process = kNone;
    int64_t collectiveId = 0;
    Index unit = kNone;
    int64_t enqueuedNs = 0;
    std::optional<int64_t> startedNs;
    std::optional<int64_t> endedNs;
    std::optional<int64_t> waitNs; ///< from its start until the last rank's; empty until all have started
};

/// A collective call, once for all ranks, joined by (uid, sequence).
struct CollectiveCall
{
    int64_t attempt = 1;
    std::string communicator; ///< uid
    int64_t size = 0;         ///< ranks in it
    int64_t sequence = 0;
    Operation operation = Operation::AllGather;
    std::string unit; ///< name; "": none
    std::optional<Phase> phase;
    std::optional<int64_t> step; ///< number
    std::string dtype;
    int64_t inputBytes = 0; ///< a rank
    int64_t outputBytes = 0;
    std::vector<CollectivePart> parts; ///< by process
    bool operationsAgree = true;       ///< false: ranks call different things here, which hangs or corrupts

    /// When the last rank started; empty where one has not, or is missing.
    std::optional<int64_t> lastStartNs() const;
    /// From the last rank's start to the last rank's end.
    std::optional<int64_t> transferNs() const;
};

/// Memory samples of one process and place, by time. Bytes; −1 in optional columns: not measured.
struct MemoryColumns
{
    Index process = kNone;
    std::string place;
    Index device = kNone;
    std::vector<int64_t> memoryId; ///< in its file
    std::vector<int64_t> timeNs;
    std::vector<int32_t> step; ///< −1: none
    std::vector<char> isStepPeak;
    std::array<std::vector<int64_t>, kMemoryCategories> categoryBytes;
    std::vector<int64_t> roundingBytes;
    std::vector<int64_t> pendingFreeBytes;
    std::vector<int64_t> allocatedBytes;
    std::vector<int64_t> activeBytes;
    std::vector<int64_t> reservedBytes;
    std::vector<int64_t> processUsedBytes; ///< −1
    std::vector<int64_t> deviceUsedBytes;  ///< −1

    size_t size() const { return timeNs.size(); }
};

/// Unit × category at the peak of one step and rank. The rest up to allocatedBytes is rounding.
struct MemoryPeak
{
    Index process = kNone;
    int64_t memoryId = 0;
    int64_t step = 0;
    int64_t timeNs = 0;
    std::string place;
    int64_t allocatedBytes = 0;
    int64_t roundingBytes = 0;
    std::array<int64_t, kMemoryCategories> categoryBytes{};
    struct Cell
    {
        Index unit = kNone;
        MemoryCategory category = MemoryCategory::Other;
        int64_t bytes = 0;
    };
    std::vector<Cell> cells; ///< empty where the retention has thinned them out
};

struct EventInfo
{
    Index process = kNone;
    Index device = kNone;
    int64_t timeNs = 0;
    std::optional<int64_t> step; ///< number
    EventKind kind = EventKind::Warning;
    std::string text;
    std::string detailJson; ///< "": none
    int64_t row = 0;        ///< of its process: later ones have higher numbers
};

/// The last event of each process that was read. Processes write at times of their own: what happened sooner may be
/// there to read later.
using EventPosition = std::map<Index, int64_t>;

struct MetricSeries
{
    Index process = kNone;
    Index device = kNone;
    std::string name;
    std::vector<int64_t> timeNs;
    std::vector<double> value;
};

/// What a process has committed since a reader looked last.
struct Tail
{
    Index process = kNone;
    int64_t lastFlushId = 0;             ///< hand it back next time
    std::optional<int64_t> firstStartNs; ///< read spans again from here; empty: no new ones
    std::optional<int64_t> lastEndNs;
    int64_t spans = 0;
    int64_t droppedRecords = 0;
    bool changed = false;
};

} // namespace shardscope::store
