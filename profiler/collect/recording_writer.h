// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/collectives.h"
#include "profiler/collect/device_join.h"
#include "profiler/collect/flight_ring.h"
#include "profiler/collect/lanes.h"
#include "profiler/collect/metrics_sampler.h"
#include "profiler/collect/phase_brackets.h"
#include "profiler/collect/recorder.h"
#include "profiler/collect/recorder_event.h"
#include "profiler/collect/step_sums.h"
#include "profiler/collect/text_table.h"
#include "profiler/store/writer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardscope::collect {

/// Where the ids of a recording go on: 1 in a new one.
struct FirstIds
{
    int64_t span = 1;
    int64_t memory = 1;
    int64_t step = 1;
    int64_t collective = 1;
    int64_t communicator = 1;
    int64_t lane = 1;

    static Result<FirstIds> of(const store::Writer &writer);
};

/// Turns events, device records, samples and metrics into rows. Used by one thread.
class RecordingWriter
{
public:
    using FinishedStep = std::function<void(const store::StepRow &)>;
    /// `options`, `texts` and `flight` must outlive it. `finished` is told of every step whose sums are known.
    RecordingWriter(store::Writer writer, FirstIds ids, const RecorderOptions &options, const TextTable &texts,
                    FlightRing &flight, FinishedStep finished);

    void take(Event &&event);
    void take(const MemorySample &sample, const DeviceMemoryUse &use);
    void take(const AllocationEvent &allocation);
    void take(ActivityBatch &&batch);
    void take(const std::vector<Metric> &metrics);
    /// A row of `event`, from the recorder itself.
    void note(EventKind kind, std::string text, std::string detailJson = {});
    void clock(const store::ClockRow &row) { m_writer.add(row); }

    /// Finishes what can be finished and commits. `dropped`: what the queues lost since the last call.
    Result<> flush(int64_t dropped);
    /// Finishes all and ends the database.
    Result<> close(int64_t dropped, std::optional<int> exitCode);
    RecordLevel level() const { return m_level; }
    int64_t recordsDropped() const { return m_writer.recordsDropped(); }

private:
    void describe();
    void handle(std::monostate) {}
    void handle(const SpanEvent &event);
    void handle(const CollectiveEvent &event);
    void handle(const TransferEvent &event);
    void handle(const StepBeganEvent &event);
    void handle(const StepEndedEvent &event);
    void handle(const StepValuesEvent &event);
    void addLossScale(int64_t step, const observe::StepResult &result);
    void handle(const UnitsEvent &event);
    void handle(const CommunicatorEvent &event);
    void handle(const NoteEvent &event);
    void handle(const ConfigurationEvent &event);
    void handle(const JoinedRecord &joined);
    void handleCall(const JoinedRecord &joined);
    bool isSetUp(const JoinedRecord &joined) const;
    void addSpan(store::SpanRow row, int64_t endNs);
    int64_t addMemory(size_t source, const MemoryReading &reading, int64_t step, bool isPeak,
                      const DeviceMemoryUse &use);
    void checkSum(size_t source, const MemoryReading &reading);
    std::optional<int64_t> stepId(int64_t number) const;
    std::optional<int64_t> stepIdOfNote(int64_t number) const;
    std::optional<int64_t> unitId(observe::UnitIndex unit) const;
    std::optional<int64_t> collectiveId(int64_t number) const;

    const RecorderOptions &m_options;
    const TextTable &m_texts;
    FlightRing &m_flight;
    store::Writer m_writer;
    store::ProcessRow m_process;
    /// Launches of this moment are kept: those of a step at `full` may come after it.
    bool isFullAt(int64_t timeNs) const { return m_level == RecordLevel::Full || timeNs < m_fullUntilNs; }

    RecordLevel m_level;
    int64_t m_fullUntilNs = 0;
    int64_t m_configId = 1;
    const bool m_cuda;

    FirstIds m_next; ///< of collectives and communicators: where this process's begin
    int64_t m_deviceDropped = 0;
    int64_t m_sumWarnings = 0;
    std::unordered_map<int64_t, int64_t> m_stepIds;
    std::optional<int64_t> m_lastStep; ///< number of the step that began last

    Lanes m_lanes;
    StepSumsKeeper m_steps;
    Collectives m_collectives;
    PhaseBrackets m_brackets;
    DeviceJoin m_join;
};

} // namespace shardscope::collect
