// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/observe/observer.h"
#include "profiler/collect/activity_source.h"
#include "profiler/collect/memory_source.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::collect {

/// The device that a rank computes on, as `device` of the recording says it. profiler/allocator describes CUDA devices;
/// hostDevice() the CPU.
struct DeviceDescription
{
    DeviceKind kind = DeviceKind::Cpu;
    int32_t ordinal = 0;
    std::string name;
    std::string uuid; ///< "GPU-…"; empty: none
    std::string pci;  ///< "00000000:1B:00.0"; empty: none
    std::optional<int64_t> memoryBytes;
    int32_t computeCapability = 0; ///< major × 10 + minor
    int32_t multiprocessors = 0;
};

/// This machine's processor and memory.
DeviceDescription hostDevice();

struct RecorderOptions
{
    std::filesystem::path database; ///< attempt-K/rank-N.sqlite
    std::filesystem::path flight;   ///< attempt-K/rank-N.flight

    RecordLevel level = RecordLevel::Light;
    int64_t keepSteps = 200; ///< the newest steps whose spans stay
    int64_t keepFirst = 10;  ///< and the first ones
    double maxGib = 4;

    int32_t attempt = 1;
    int32_t rank = 0;
    int32_t localRank = 0;
    int32_t worldSize = 1;
    std::string command; ///< how this process was started
    DeviceDescription device;
    Precision compute = Precision::Fp32; ///< chooses the device's peak rate

    int64_t originNs = 0;          ///< of the run, from run.json
    double modelFlopsPerToken = 0; ///< 0: not known
    std::string configurationJson; ///< the resolved configuration in force at the start
    int64_t firstStep = 0;         ///< the number of the first step of this attempt
    /// More rows of `meta`: versions of torch, NCCL, the driver, …
    std::vector<std::pair<std::string, std::string>> meta;

    /// The tag that the memory sources read; setMemoryTag() writes it.
    std::shared_ptr<CurrentMemoryTag> memoryTag;
    /// Allocators to sample, the one of the rank's own device first: its peak is the step's peak.
    std::vector<std::shared_ptr<MemorySource>> memory;
    /// Where the device's records come from; null: CUPTI, where the device is CUDA's and it is there.
    std::unique_ptr<ActivitySource> activity;
    /// Told why the recording can't be written, on the recorder's own thread and once a minute at most; may be empty.
    std::function<void(const std::string &)> trouble;
    /// Events that the queue holds; what comes on top is dropped and counted.
    size_t queueEvents = 1 << 15;
};

/// What a recorder has lost so far. All zero in a healthy run.
struct RecorderLosses
{
    int64_t queue = 0;    ///< events that found the queue full
    int64_t memory = 0;   ///< samples and peaks of memory that could not be read: other threads allocated all the time
    int64_t device = 0;   ///< records that CUPTI dropped
    int64_t database = 0; ///< records that could not be written
};

/// What is known of a step while the run goes on; empty: not measured, or not yet.
struct StepFigures
{
    std::optional<int64_t> peakAllocatedBytes; ///< known when the step ends
    std::optional<int64_t> exposedCommunicationNs;
    std::optional<int64_t> wallNs; ///< of the step's row: with a device, known about a second later
};

/// The observer that writes a rank's recording: events go from any thread into a bounded queue, a thread of its own
/// turns them into rows. No call waits for it; what the queue can't take is dropped and counted, and the count is
/// stored.
///
///     auto recorder = Recorder::open(std::move(options));
///     … train with **recorder as the observe::Observer …
///     (*recorder)->close(0);
class Recorder final : public observe::Observer
{
public:
    static Result<std::unique_ptr<Recorder>> open(RecorderOptions options);
    /// Closes without an exit code if nobody did.
    ~Recorder() override;

    /// Writes what is left and ends the recording. Later calls do nothing. Let the device finish before: work that it
    /// has not done counts as lost.
    Result<> close(std::optional<int> exitCode);

    RecorderLosses losses() const;
    /// Of one of the last 64 steps. Does not wait.
    StepFigures figuresOf(int64_t step) const;

    void onUnits(std::span<const observe::UnitInfo> units) override;
    int32_t onCommunicator(const observe::CommunicatorInfo &info) override;
    /// Takes the level of recording too: what a rank began without (device, metrics) is started then, and a warning
    /// says what can't be.
    void configurationChanged(const observe::ConfigurationInfo &info) override;
    void stepBegan(int64_t number) override;
    void stepEnded(const observe::StepResult &result) override;
    void stepValues(int64_t number, const observe::StepResult &result) override;
    int64_t beginSpan(const observe::SpanInfo &info) override;
    void endSpan(int64_t span) override;
    void beginDeviceWork(Phase phase, observe::UnitIndex unit) override;
    void endDeviceWork() override;
    int64_t beginCollective(const observe::CollectiveInfo &info) override;
    void collectiveEnqueued(int64_t collective) override;
    void collectiveStarted(int64_t collective) override;
    void collectiveEnded(int64_t collective) override;
    observe::MemoryTag setMemoryTag(observe::MemoryTag tag) override;
    void memoryHeld(const observe::HeldMemory &change) override;
    void sampleMemory() override;
    void event(EventKind kind, std::string_view text, std::string_view detailJson,
               std::optional<int64_t> step) override;

private:
    class Impl;
    explicit Recorder(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace shardscope::collect
