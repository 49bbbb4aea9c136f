// SPDX-License-Identifier: Apache-2.0
// What there is to observe in a rank of a training run. The engine, the model and the loop call an Observer and know
// nothing of who listens; app/worker hands them the recorder of profiler/collect, tests hand them what they like.
// No call may block: an observer that can't keep up drops, and counts what it dropped.
#pragma once

#include "core/base/names.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::observe {

/// Index of a unit in what onUnits() was told; kNoUnit where a thing belongs to none.
using UnitIndex = int32_t;
inline constexpr UnitIndex kNoUnit = -1;
/// Where a span waits for no collective.
inline constexpr int64_t kNoCollective = -1;

/// A sharded unit, or (with a parent) a bucket of one. Bytes are of this rank.
struct UnitInfo
{
    std::string name; ///< "block.3"; a bucket's is "block.3/norm"
    UnitKind kind = UnitKind::Other;
    int32_t ordinal = 0; ///< in the order of the forward pass
    UnitIndex parent = kNoUnit;
    int64_t parameters = 0;     ///< elements of the whole unit, padding not counted
    int64_t parameterBytes = 0; ///< of the whole unit in the compute dtype, padding not counted
    int64_t shardBytes = 0;     ///< this rank's slice of the masters, padding counted
    int64_t paddingBytes = 0;   ///< of the whole unit's masters
};

/// A process group. The uid is equal on all its ranks and new for each attempt.
struct CommunicatorInfo
{
    std::string uid;
    std::string backend; ///< "nccl" or "gloo"
    int32_t rankInIt = 0;
    std::vector<int32_t> members; ///< global ranks
};

/// One collective call, known before it is enqueued. Bytes are those of this rank's input and output.
struct CollectiveInfo
{
    int32_t communicator = 0; ///< what onCommunicator() returned
    int64_t sequence = 0;     ///< counts the calls on this communicator from 0; equal on all ranks
    Operation operation = Operation::AllGather;
    UnitIndex unit = kNoUnit;
    Phase phase = Phase::Forward;
    std::string_view dtype; ///< "fp32", "bf16", "int64", …
    int64_t inputBytes = 0;
    int64_t outputBytes = 0;
    const void *stream = nullptr; ///< on CUDA the cudaStream_t that it runs in
};

/// What a span is, known when it begins. Names are few and repeat: they are interned.
struct SpanInfo
{
    std::string_view name; ///< "forward", "attention", …
    SpanCategory category = SpanCategory::Compute;
    Phase phase = Phase::Forward;
    UnitIndex unit = kNoUnit;
    int64_t bytes = 0; ///< moved, where that means something; 0: not measured
    /// What beginCollective() returned, for a wait on it: an idle span with one counts as waiting for a peer.
    int64_t collective = kNoCollective;
};

/// Whose bytes the allocations of the process are from now on.
struct MemoryTag
{
    MemoryCategory category = MemoryCategory::Other;
    UnitIndex unit = kNoUnit;
    bool operator==(const MemoryTag &) const = default;
};

/// Where memory lies: on the device, in pinned or in other memory of the host, in files on a drive.
enum class MemoryPlace { Device, Pinned, Host, Nvme };

/// A change of memory that none of LibTorch's allocators gives out. Whoever holds it tells: pools what is in use of
/// what they have, others the same for both.
struct HeldMemory
{
    MemoryPlace place = MemoryPlace::Pinned;
    MemoryTag tag;
    int64_t usedBytes = 0;     ///< more than before; negative: less
    int64_t reservedBytes = 0; ///< likewise
};

/// What the loop knows of a step once it is over.
struct StepResult
{
    std::optional<double> loss;         ///< of the whole global batch, a counted token
    std::optional<double> gradientNorm; ///< of the whole model, before clipping
    std::optional<double> validationLoss;
    double learningRate = 0;
    int64_t tokens = 0; ///< this rank's counted tokens
    StepState state = StepState::Ok;
    std::optional<double> lossScale; ///< of fp16, in this step
};

/// A configuration that comes into force between two steps. Its strings live as long as the call.
struct ConfigurationInfo
{
    int64_t firstStep = 0;        ///< the first step under it
    std::string_view changedJson; ///< {"parallel.strategy": {"from": "full", "to": "none"}}
    std::string_view fullJson;
    std::string_view origin; ///< "user", "undo", "sweep"
    int64_t requestedNs = 0; ///< CLOCK_REALTIME
    RecordLevel level = RecordLevel::Light;
};

class Observer
{
public:
    virtual ~Observer() = default;

    /// The units of the model, once, before the first step. Indices into it are UnitIndex.
    virtual void onUnits(std::span<const UnitInfo>) {}
    /// A process group exists. Returns the number that its collectives carry.
    virtual int32_t onCommunicator(const CommunicatorInfo &) { return 0; }

    /// Between two steps, from the thread that trains: the steps that begin from now on are under it, its level of
    /// recording included.
    virtual void configurationChanged(const ConfigurationInfo &) {}

    virtual void stepBegan(int64_t /*number*/) {}
    /// Ends the step; the device may still be busy with it. Where it is, loss and norm are absent here and
    /// stepValues() brings them.
    virtual void stepEnded(const StepResult &) {}
    /// The result of an ended step as the device told it later: a step's loss is read while the next one runs, so that
    /// nothing waits for the device.
    virtual void stepValues(int64_t /*number*/, const StepResult &) {}

    /// Spans of one thread nest. Returns what endSpan() takes.
    virtual int64_t beginSpan(const SpanInfo &) { return 0; }
    virtual void endSpan(int64_t /*span*/) {}

    /// What this thread gives the device until endDeviceWork() is of this unit and phase, whatever span it lies in, and
    /// runs beside the computation. Nests with spans; makes no record of its own.
    virtual void beginDeviceWork(Phase, UnitIndex) {}
    virtual void endDeviceWork() {}

    /// Brackets the call that enqueues a collective (launches inside belong to it). Returns its number.
    virtual int64_t beginCollective(const CollectiveInfo &) { return 0; }
    virtual void collectiveEnqueued(int64_t /*collective*/) {}
    /// Host-clock backends (Gloo) say when the transfer began and ended, from any thread; on CUDA the kernels' records
    /// do.
    virtual void collectiveStarted(int64_t /*collective*/) {}
    virtual void collectiveEnded(int64_t /*collective*/) {}

    /// Sets the tag of what is allocated from now on, by any thread; returns the tag before.
    virtual MemoryTag setMemoryTag(MemoryTag) { return {}; }
    /// Called by one thread at a time for each place.
    virtual void memoryHeld(const HeldMemory &) {}
    /// A place where the memory is worth a sample (phases and units do this by themselves).
    virtual void sampleMemory() {}

    /// Something a user should find again: checkpoint written, NaN, warning. detailJson is an object, or empty. step:
    /// what it is about, which may be the next to begin; none: the one that runs, if one does.
    virtual void event(EventKind, std::string_view /*text*/, std::string_view /*detailJson*/ = {},
                       std::optional<int64_t> /*step*/ = {})
    {
    }
};

/// A span for the length of a C++ scope.
class SpanScope
{
public:
    SpanScope(Observer &observer, const SpanInfo &info)
        : m_observer(observer)
        , m_span(observer.beginSpan(info))
    {
    }
    ~SpanScope() { m_observer.endSpan(m_span); }
    SpanScope(const SpanScope &) = delete;
    SpanScope &operator=(const SpanScope &) = delete;

private:
    Observer &m_observer;
    int64_t m_span;
};

/// Work for the device, for the length of a C++ scope.
class DeviceWorkScope
{
public:
    DeviceWorkScope(Observer &observer, Phase phase, UnitIndex unit)
        : m_observer(observer)
    {
        m_observer.beginDeviceWork(phase, unit);
    }
    ~DeviceWorkScope() { m_observer.endDeviceWork(); }
    DeviceWorkScope(const DeviceWorkScope &) = delete;
    DeviceWorkScope &operator=(const DeviceWorkScope &) = delete;

private:
    Observer &m_observer;
};

/// A memory tag for the length of a C++ scope.
class MemoryScope
{
public:
    MemoryScope(Observer &observer, MemoryTag tag)
        : m_observer(observer)
        , m_before(observer.setMemoryTag(tag))
    {
    }
    ~MemoryScope() { m_observer.setMemoryTag(m_before); }
    MemoryScope(const MemoryScope &) = delete;
    MemoryScope &operator=(const MemoryScope &) = delete;

private:
    Observer &m_observer;
    MemoryTag m_before;
};

} // namespace shardscope::observe
