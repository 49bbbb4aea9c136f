// SPDX-License-Identifier: Apache-2.0
// What goes from the threads of a rank to the recorder's own thread. Small and without allocation for what comes often;
// what comes seldom carries its contents on the heap.
#pragma once

#include "core/observe/observer.h"
#include "profiler/collect/memory_source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shardscope::collect {

/// Where something belongs to no step.
inline constexpr int64_t kNoStep = -1;

/// A span that ended.
struct SpanEvent
{
    SpanCategory category = SpanCategory::Compute;
    Phase phase = Phase::Forward;
    bool bracket = false; ///< the outermost span of its phase and unit on the train thread
    uint32_t name = 0;    ///< TextTable
    observe::UnitIndex unit = observe::kNoUnit;
    int32_t thread = 0; ///< gettid()
    int64_t step = kNoStep;
    int64_t startNs = 0;
    int64_t durationNs = 0;
    int64_t bytes = 0;
    int64_t collective = observe::kNoCollective;
};

struct CollectiveEvent
{
    int64_t number = 0;
    int32_t communicator = 0;
    observe::UnitIndex unit = observe::kNoUnit;
    Operation operation = Operation::AllGather;
    Phase phase = Phase::Forward;
    uint32_t dtype = 0; ///< TextTable
    int64_t sequence = 0;
    int64_t step = kNoStep;
    int64_t inputBytes = 0;
    int64_t outputBytes = 0;
    int64_t enqueuedNs = 0;
    std::optional<uint32_t> stream; ///< of its device records
};

/// A collective's transfer began or ended, as the host saw it.
struct TransferEvent
{
    int64_t number = 0;
    bool ended = false;
    int64_t timeNs = 0; ///< CLOCK_REALTIME
    int64_t monotonicNs = 0;
};

struct StepBeganEvent
{
    int64_t number = 0;
    int64_t startNs = 0;
    int64_t monotonicNs = 0;
};

struct StepEndedEvent
{
    struct Payload
    {
        int64_t number = 0;
        int64_t monotonicNs = 0;
        observe::StepResult result;
        /// By memory source.
        std::vector<std::optional<MemoryPeak>> peaks;
    };
    std::unique_ptr<Payload> payload;
};

struct StepValuesEvent
{
    struct Payload
    {
        int64_t number = 0;
        observe::StepResult result;
    };
    std::unique_ptr<Payload> payload;
};

struct UnitsEvent
{
    std::unique_ptr<std::vector<observe::UnitInfo>> units;
};

struct CommunicatorEvent
{
    int32_t number = 0;
    std::unique_ptr<observe::CommunicatorInfo> info;
};

struct NoteEvent
{
    struct Payload
    {
        EventKind kind = EventKind::Warning;
        int64_t timeNs = 0;
        int64_t step = kNoStep;
        std::string text;
        std::string detailJson;
    };
    std::unique_ptr<Payload> payload;
};

/// Steps that begin from now on are under another configuration.
struct ConfigurationEvent
{
    struct Payload
    {
        int64_t firstStep = 0;
        std::string changedJson;
        std::string fullJson;
        std::string origin;
        int64_t requestedNs = 0;
        RecordLevel level = RecordLevel::Light;
    };
    std::unique_ptr<Payload> payload;
};

using Event = std::variant<std::monostate, SpanEvent, CollectiveEvent, TransferEvent, StepBeganEvent, StepEndedEvent,
                           StepValuesEvent, UnitsEvent, CommunicatorEvent, NoteEvent, ConfigurationEvent>;

struct MemorySample
{
    size_t source = 0;
    int64_t step = kNoStep;
    MemoryReading reading;
};

struct AllocationEvent
{
    size_t source = 0;
    AllocationRecord record;
};

} // namespace shardscope::collect
