// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/clock_watch.h"
#include "profiler/collect/mailbox.h"
#include "profiler/collect/recorder.h"
#include "profiler/collect/recording_writer.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shardscope::collect {

/// The recorder's own thread: empties the mailbox, the device's records and the metrics into the database.
class RecorderThread
{
public:
    /// All that is handed over by reference must outlive it. `metrics` may be null.
    RecorderThread(store::Writer writer, FirstIds ids, RecorderOptions &options, Mailbox &mailbox, FlightRing &flight,
                   std::unique_ptr<MetricsSampler> metrics);
    ~RecorderThread();

    Result<> close(std::optional<int> exitCode);
    /// For a recording that begins after the rank did. What is null stays as it was.
    void adopt(std::unique_ptr<ActivitySource> activity, std::unique_ptr<MetricsSampler> metrics);
    RecorderLosses losses() const;

    void keepPeak(int64_t step, std::optional<int64_t> bytes);
    StepFigures figuresOf(int64_t step) const;

private:
    void loop();
    void drain();
    void flush();
    Result<> finish(std::optional<int> exitCode);
    /// An exception (bad_alloc) on this thread would end the process: it costs what was being taken and is said.
    void guarded(const std::function<void()> &work);
    /// What the queues lost since it was asked last.
    int64_t takeLost();
    void takeDevice(ActivityBatch &&batch);
    void takeMetrics();
    void watchClock();
    void complain(const std::string &text);
    void finished(const store::StepRow &row);
    void writeLiveAllocations();

    ActivitySource *activity();
    MetricsSampler *metrics();

    RecorderOptions &m_options;
    Mailbox &m_mailbox;
    std::mutex m_adopting; ///< guards the two pointers; what they point to stays
    std::unique_ptr<MetricsSampler> m_metrics;
    RecordingWriter m_writer;
    ClockWatch m_clock;
    int64_t m_lastComplaintNs = 0;

    std::atomic<int64_t> m_lostInQueue{0};
    std::atomic<int64_t> m_memoryUnread{0};
    std::atomic<int64_t> m_lostByDevice{0};
    std::atomic<int64_t> m_lostInDatabase{0};

    static constexpr size_t kFigures = 64;
    struct KnownStep
    {
        int64_t step = kNoStep;
        StepFigures figures;
    };
    KnownStep &known(int64_t step);
    mutable std::mutex m_figuresMutex;
    std::array<KnownStep, kFigures> m_figures;

    std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_stopping = false;
    std::thread m_thread;
};

} // namespace shardscope::collect
