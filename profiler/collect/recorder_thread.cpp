// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/recorder_thread.h"

#include "core/base/clock.h"
#include "profiler/collect/background_thread.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <utility>

namespace shardscope::collect {

namespace {

// The mailbox is emptied often, so that it need not be large; a commit comes well within docs/contract.md's 500 ms.
constexpr auto kDrainPeriod = std::chrono::milliseconds(50);
constexpr int64_t kFlushNs = 350'000'000;
constexpr int64_t kComplaintNs = 60'000'000'000;

} // namespace

RecorderThread::RecorderThread(store::Writer writer, FirstIds ids, RecorderOptions &options, Mailbox &mailbox,
                               FlightRing &flight, std::unique_ptr<MetricsSampler> metrics)
    : m_options(options)
    , m_mailbox(mailbox)
    , m_metrics(std::move(metrics))
    , m_writer(std::move(writer), ids, options, mailbox.texts, flight,
               [this](const store::StepRow &row) { finished(row); })
{
    m_thread = startBackgroundThread("recorder", [this] { loop(); });
}

RecorderThread::~RecorderThread()
{
    if (m_thread.joinable())
        (void)close(std::nullopt);
}

void RecorderThread::loop()
{
    guarded([this] { flush(); });
    int64_t lastFlushNs = monotonicNs();
    std::unique_lock lock(m_mutex);
    while (!m_wake.wait_for(lock, kDrainPeriod, [this] { return m_stopping; })) {
        lock.unlock();
        guarded([this] { drain(); });
        if (monotonicNs() - lastFlushNs >= kFlushNs) {
            lastFlushNs = monotonicNs();
            guarded([this] { flush(); });
        }
        lock.lock();
    }
}

void RecorderThread::guarded(const std::function<void()> &work)
{
    try {
        work();
    } catch (const std::exception &error) {
        // The one event that was in hand; what is still in the queues is taken the next time.
        m_mailbox.dropped.fetch_add(1, std::memory_order_relaxed);
        complain(error.what());
    }
}

int64_t RecorderThread::takeLost()
{
    const int64_t dropped = m_mailbox.dropped.exchange(0);
    const int64_t unread = m_mailbox.unread.exchange(0);
    m_lostInQueue += dropped;
    m_memoryUnread += unread;
    return dropped + unread;
}

void RecorderThread::drain()
{
    Event event;
    while (m_mailbox.events.pop(event))
        m_writer.take(std::move(event));
    MetricsSampler *sampler = metrics();
    const DeviceMemoryUse use = sampler ? sampler->deviceMemory() : DeviceMemoryUse{};
    MemorySample sample;
    while (m_mailbox.samples.pop(sample))
        m_writer.take(sample, use);
    AllocationEvent allocation;
    auto *allocations = m_mailbox.allocations.load(std::memory_order_acquire);
    while (allocations && allocations->pop(allocation))
        m_writer.take(allocation);
}

void RecorderThread::takeDevice(ActivityBatch &&batch)
{
    m_lostByDevice += batch.dropped;
    m_writer.take(std::move(batch));
}

void RecorderThread::flush()
{
    // The device's records first, then the mailbox: what a record belongs to was told before its call was made.
    ActivitySource *source = activity();
    ActivityBatch batch = source ? source->take() : ActivityBatch{};
    drain();
    takeDevice(std::move(batch));
    takeMetrics();
    watchClock();
    if (auto written = m_writer.flush(takeLost()); !written)
        complain(written.error().text);
    // The writer counts what it was told was lost, too.
    m_lostInDatabase = m_writer.recordsDropped() - m_lostInQueue - m_memoryUnread - m_lostByDevice;
}

void RecorderThread::takeMetrics()
{
    MetricsSampler *sampler = metrics();
    if (!sampler)
        return;
    const std::vector<Metric> taken = sampler->take();
    if (m_writer.level() != RecordLevel::Off)
        m_writer.take(taken);
}

void RecorderThread::adopt(std::unique_ptr<ActivitySource> activity, std::unique_ptr<MetricsSampler> metrics)
{
    const std::lock_guard lock(m_adopting);
    if (activity)
        m_options.activity = std::move(activity);
    if (metrics)
        m_metrics = std::move(metrics);
}

ActivitySource *RecorderThread::activity()
{
    const std::lock_guard lock(m_adopting);
    return m_options.activity.get();
}

MetricsSampler *RecorderThread::metrics()
{
    const std::lock_guard lock(m_adopting);
    return m_metrics.get();
}

void RecorderThread::watchClock()
{
    if (!m_clock.due(monotonicNs()))
        return;
    const ClockPair pair = ClockPair::now();
    m_writer.clock({.timeNs = pair.realtimeNs, .monotonicNs = pair.monotonicNs, .uncertaintyNs = pair.uncertaintyNs});
    if (const auto jump = m_clock.take(pair)) {
        const std::string text = fmt::format(
            "The machine's clock was moved by {} ms: times before and after do not fit.", *jump / 1'000'000);
        spdlog::warn("{}", text);
        m_writer.note(EventKind::Warning, text, fmt::format("{{\"jump_ns\": {}}}", *jump));
    }
}

void RecorderThread::complain(const std::string &text)
{
    // A full disk stays full: once a minute is enough.
    const int64_t nowNs = monotonicNs();
    if (m_lastComplaintNs != 0 && nowNs - m_lastComplaintNs < kComplaintNs)
        return;
    m_lastComplaintNs = nowNs;
    const std::string told = fmt::format("The recording can't be written; the training goes on. {}", text);
    spdlog::error("{}", told);
    if (m_options.trouble)
        m_options.trouble(told);
}

Result<> RecorderThread::close(std::optional<int> exitCode)
{
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_wake.notify_all();
    m_thread.join();

    try {
        return finish(exitCode);
    } catch (const std::exception &error) {
        return fail("The recording could not be ended: {}.", error.what());
    }
}

Result<> RecorderThread::finish(std::optional<int> exitCode)
{
    // Each by itself: what one loses costs no other.
    ActivityBatch batch;
    guarded([&] {
        if (ActivitySource *source = activity())
            batch = source->stop();
    });
    guarded([&] { drain(); });
    guarded([&] { takeDevice(std::move(batch)); });
    guarded([&] { writeLiveAllocations(); });
    guarded([&] { takeMetrics(); });
    const int64_t dropped = takeLost();
    if (const RecorderLosses lost = losses(); lost.queue + lost.memory + lost.device + lost.database > 0) {
        const std::string text =
            fmt::format("The recording has gaps: {} events found the recorder's queue full, memory could not be read "
                        "{} times, CUPTI dropped {} records, {} could not be written.",
                        lost.queue, lost.memory, lost.device, lost.database);
        spdlog::warn("{}", text);
        m_writer.note(EventKind::Recording, text,
                      fmt::format("{{\"queue\": {}, \"memory\": {}, \"device\": {}, \"database\": {}}}", lost.queue,
                                  lost.memory, lost.device, lost.database));
    }
    return m_writer.close(dropped, exitCode);
}

void RecorderThread::writeLiveAllocations()
{
    if (m_writer.level() != RecordLevel::Full)
        return;
    for (size_t source = 0; source < m_options.memory.size(); ++source) {
        for (const AllocationRecord &record : m_options.memory[source]->liveAllocations())
            m_writer.take(AllocationEvent{source, record});
    }
}

RecorderLosses RecorderThread::losses() const
{
    return {m_lostInQueue + m_mailbox.dropped, m_memoryUnread + m_mailbox.unread, m_lostByDevice, m_lostInDatabase};
}

RecorderThread::KnownStep &RecorderThread::known(int64_t step)
{
    KnownStep &known = m_figures[static_cast<size_t>(step) % kFigures];
    if (known.step != step)
        known = {step, {}};
    return known;
}

void RecorderThread::keepPeak(int64_t step, std::optional<int64_t> bytes)
{
    const std::lock_guard lock(m_figuresMutex);
    known(step).figures.peakAllocatedBytes = bytes;
}

void RecorderThread::finished(const store::StepRow &row)
{
    const std::lock_guard lock(m_figuresMutex);
    StepFigures &figures = known(row.number).figures;
    figures.wallNs = *row.endNs - row.startNs;
    if (row.sums)
        figures.exposedCommunicationNs = row.sums->exposedCommunicationNs;
}

StepFigures RecorderThread::figuresOf(int64_t step) const
{
    const std::lock_guard lock(m_figuresMutex);
    const KnownStep &known = m_figures[static_cast<size_t>(step) % kFigures];
    return known.step == step ? known.figures : StepFigures{};
}

} // namespace shardscope::collect
