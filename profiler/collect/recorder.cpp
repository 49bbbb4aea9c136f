// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/recorder.h"

#include "core/base/clock.h"
#include "profiler/collect/device_join.h"
#include "profiler/collect/flight_ring.h"
#include "profiler/collect/held_memory.h"
#include "profiler/collect/mailbox.h"
#include "profiler/collect/memory_sampling.h"
#include "profiler/collect/open_spans.h"
#include "profiler/collect/recorder_thread.h"
#include "profiler/collect/recording_start.h"

#include <spdlog/spdlog.h>

#include <deque>
#include <mutex>
#include <unistd.h>

namespace shardscope::collect {

namespace {

/// Memory samples of a step.
constexpr int64_t kSamplesLight = 200;
constexpr int64_t kSamplesFull = 2000;

int32_t threadId()
{
    thread_local const int32_t id = ::gettid();
    return id;
}

/// What the train thread's open spans belong to, to find the outermost of each phase and unit.
struct PhaseAndUnit
{
    Phase phase = Phase::Forward;
    observe::UnitIndex unit = observe::kNoUnit;
    bool operator==(const PhaseAndUnit &) const = default;
};

/// Where others than allocators hold memory.
struct HeldMemories
{
    std::shared_ptr<HeldMemorySource> pinned = std::make_shared<HeldMemorySource>(MemoryPlace::Pinned);
    std::shared_ptr<HeldMemorySource> nvme = std::make_shared<HeldMemorySource>(MemoryPlace::Nvme);

    /// Behind the rank's own memory, which is the first source; a rank that does not track that records none.
    RecorderOptions addedTo(RecorderOptions options) const
    {
        if (!options.memory.empty())
            options.memory.insert(options.memory.end(), {pinned, nvme});
        return options;
    }
};

} // namespace

/// The ends of the recorder that the threads of the rank touch.
class Recorder::Impl
{
public:
    Impl(RecorderOptions options, store::Writer writer, FirstIds ids, std::unique_ptr<FlightRing> flight,
         std::unique_ptr<MetricsSampler> metrics);

    Result<> close(std::optional<int> exitCode);
    void onUnits(std::span<const observe::UnitInfo> units);
    int32_t onCommunicator(const observe::CommunicatorInfo &info);
    void configurationChanged(const observe::ConfigurationInfo &info);
    void stepBegan(int64_t number);
    void stepEnded(const observe::StepResult &result);
    int64_t beginSpan(const observe::SpanInfo &info);
    void endSpan(int64_t handle);
    void beginDeviceWork(Phase phase, observe::UnitIndex unit);
    void endDeviceWork();
    int64_t beginCollective(const observe::CollectiveInfo &info);
    void collectiveEnqueued(int64_t number);
    void transfer(int64_t number, bool ended);
    void memoryHeld(const observe::HeldMemory &change);
    void sample();
    void note(EventKind kind, std::string text, std::string detailJson, std::optional<int64_t> step = {});
    void send(Event &&event) { m_mailbox.send(m_mailbox.events, std::move(event)); }

    RecorderThread &thread() { return m_thread; }
    CurrentMemoryTag *tag() { return m_options.memoryTag.get(); }

private:
    bool onTrainThread() const { return threadId() == m_trainThread; }
    bool recording() const { return m_level.load(std::memory_order_relaxed) != RecordLevel::Off; }
    void setLevel(RecordLevel level);
    void startLate(RecordLevel level);
    void recordAllocations(bool on);
    std::string_view unitName(observe::UnitIndex unit) const;

    const HeldMemories m_held;
    RecorderOptions m_options;
    std::atomic<RecordLevel> m_level; ///< changes between two steps
    ActivitySource *m_activity;       ///< null: no device is recorded
    bool m_hasMetrics;
    const int32_t m_trainThread;
    std::unique_ptr<FlightRing> m_flight;
    Mailbox m_mailbox;
    OpenSpans m_openSpans;
    MemorySampling m_sampling;
    std::vector<PhaseAndUnit> m_stack; ///< the train thread's
    std::atomic<int64_t> m_step{kNoStep};
    std::atomic<int64_t> m_collectives{0};
    std::atomic<bool> m_closed{false};
    // Written before the threads that read them start, by what the engine's construction orders.
    std::vector<std::string> m_unitNames;
    std::deque<std::string> m_communicators;
    mutable std::mutex m_communicatorsMutex;
    RecorderThread m_thread;
};

Recorder::Impl::Impl(RecorderOptions options, store::Writer writer, FirstIds ids, std::unique_ptr<FlightRing> flight,
                     std::unique_ptr<MetricsSampler> metrics)
    : m_options(m_held.addedTo(std::move(options)))
    , m_level(m_options.level)
    , m_activity(m_options.activity.get())
    , m_hasMetrics(metrics != nullptr)
    , m_trainThread(threadId())
    , m_flight(std::move(flight))
    , m_mailbox(m_options.queueEvents)
    , m_sampling(m_options.level == RecordLevel::Full ? kSamplesFull : kSamplesLight)
    , m_thread(std::move(writer), ids, m_options, m_mailbox, *m_flight, std::move(metrics))
{
    recordAllocations(m_options.level == RecordLevel::Full);
}

void Recorder::Impl::recordAllocations(bool on)
{
    if (on)
        m_mailbox.openAllocations();
    for (size_t source = 0; source < m_options.memory.size(); ++source) {
        if (!on) {
            m_options.memory[source]->recordAllocations({});
            continue;
        }
        m_options.memory[source]->recordAllocations([this, source](const AllocationRecord &record) {
            m_mailbox.send(*m_mailbox.allocations.load(std::memory_order_acquire), AllocationEvent{source, record});
        });
    }
}

Result<> Recorder::Impl::close(std::optional<int> exitCode)
{
    if (m_closed.exchange(true))
        return {};
    recordAllocations(false);
    return m_thread.close(exitCode);
}

std::string_view Recorder::Impl::unitName(observe::UnitIndex unit) const
{
    return unit >= 0 && static_cast<size_t>(unit) < m_unitNames.size()
               ? std::string_view(m_unitNames[static_cast<size_t>(unit)])
               : std::string_view();
}

void Recorder::Impl::onUnits(std::span<const observe::UnitInfo> units)
{
    for (const observe::UnitInfo &unit : units)
        m_unitNames.push_back(unit.name);
    send(UnitsEvent{std::make_unique<std::vector<observe::UnitInfo>>(units.begin(), units.end())});
}

int32_t Recorder::Impl::onCommunicator(const observe::CommunicatorInfo &info)
{
    int32_t number = 0;
    {
        const std::lock_guard lock(m_communicatorsMutex);
        number = static_cast<int32_t>(m_communicators.size());
        m_communicators.push_back(info.uid);
    }
    send(CommunicatorEvent{number, std::make_unique<observe::CommunicatorInfo>(info)});
    return number;
}

void Recorder::Impl::configurationChanged(const observe::ConfigurationInfo &info)
{
    if (info.level != m_level.load())
        setLevel(info.level);
    send(ConfigurationEvent{std::make_unique<ConfigurationEvent::Payload>(
        ConfigurationEvent::Payload{info.firstStep, std::string(info.changedJson), std::string(info.fullJson),
                                    std::string(info.origin), info.requestedNs, m_level.load()})});
}

void Recorder::Impl::stepBegan(int64_t number)
{
    m_step.store(number, std::memory_order_relaxed);
    m_flight->step(number);
    m_sampling.stepBegan();
    for (const auto &source : m_options.memory)
        source->beginStep();
    send(StepBeganEvent{number, realtimeNs(), monotonicNs()});
    sample();
}

void Recorder::Impl::stepEnded(const observe::StepResult &result)
{
    const int64_t number = m_step.load(std::memory_order_relaxed);
    if (number == kNoStep)
        return;
    const int64_t endNs = monotonicNs();
    sample();
    auto payload = std::make_unique<StepEndedEvent::Payload>(
        StepEndedEvent::Payload{.number = number, .monotonicNs = endNs, .result = result});
    if (recording()) {
        for (const auto &source : m_options.memory) {
            payload->peaks.push_back(source->isInUse() ? source->peak() : std::nullopt);
            if (source->isInUse() && !payload->peaks.back())
                m_mailbox.unread.fetch_add(1, std::memory_order_relaxed);
        }
        if (!payload->peaks.empty() && payload->peaks.front())
            m_thread.keepPeak(number, payload->peaks.front()->reading.allocatedBytes);
    }
    send(StepEndedEvent{std::move(payload)});
    m_step.store(kNoStep, std::memory_order_relaxed);
}

int64_t Recorder::Impl::beginSpan(const observe::SpanInfo &info)
{
    if (!recording())
        return 0;
    const int64_t handle = m_openSpans.take();
    OpenSpans::Place *place = m_openSpans.find(handle);
    if (!place) {
        m_mailbox.dropped.fetch_add(1, std::memory_order_relaxed);
        return 0;
    }
    const int64_t step = m_step.load(std::memory_order_relaxed);
    place->event = {.category = info.category,
                    .phase = info.phase,
                    .name = m_mailbox.texts.number(info.name),
                    .unit = info.unit,
                    .thread = threadId(),
                    .step = step,
                    .bytes = info.bytes,
                    .collective = info.collective};
    if (onTrainThread()) {
        const PhaseAndUnit own{info.phase, info.unit};
        place->event.bracket = m_stack.empty() || m_stack.back() != own;
        m_stack.push_back(own);
        if (place->event.bracket && m_sampling.boundary())
            sample();
    }
    if (m_activity)
        m_activity->push(ContextKind::Span, packContext({step, info.unit, info.phase}));
    place->event.startNs = realtimeNs();
    place->monotonicNs = monotonicNs();
    return handle;
}

void Recorder::Impl::endSpan(int64_t handle)
{
    OpenSpans::Place *place = m_openSpans.find(handle);
    if (!place)
        return;
    SpanEvent event = place->event;
    event.durationNs = monotonicNs() - place->monotonicNs;
    m_openSpans.giveBack(handle);
    if (m_activity)
        m_activity->pop(ContextKind::Span);
    if (onTrainThread() && !m_stack.empty()) {
        m_stack.pop_back();
        if (event.bracket && m_sampling.boundary())
            sample();
    }
    send(std::move(event));
}

void Recorder::Impl::beginDeviceWork(Phase phase, observe::UnitIndex unit)
{
    if (recording() && m_activity)
        m_activity->push(ContextKind::Span, packContext({m_step.load(std::memory_order_relaxed), unit, phase, true}));
}

void Recorder::Impl::endDeviceWork()
{
    if (recording() && m_activity)
        m_activity->pop(ContextKind::Span);
}

int64_t Recorder::Impl::beginCollective(const observe::CollectiveInfo &info)
{
    const int64_t number = m_collectives.fetch_add(1, std::memory_order_relaxed);
    const int64_t step = m_step.load(std::memory_order_relaxed);
    std::string_view uid;
    {
        // Held by nobody else once the communicators are made.
        const std::lock_guard lock(m_communicatorsMutex);
        if (info.communicator >= 0 && static_cast<size_t>(info.communicator) < m_communicators.size())
            uid = m_communicators[static_cast<size_t>(info.communicator)];
    }
    m_flight->begin(number, info, step, unitName(info.unit), uid);
    if (!recording())
        return number;
    send(CollectiveEvent{.number = number,
                         .communicator = info.communicator,
                         .unit = info.unit,
                         .operation = info.operation,
                         .phase = info.phase,
                         .dtype = m_mailbox.texts.number(info.dtype),
                         .sequence = info.sequence,
                         .step = step,
                         .inputBytes = info.inputBytes,
                         .outputBytes = info.outputBytes,
                         .enqueuedNs = realtimeNs(),
                         .stream = m_activity && info.stream ? m_activity->streamId(info.stream) : std::nullopt});
    if (m_activity)
        m_activity->push(ContextKind::Collective, static_cast<uint64_t>(number));
    return number;
}

void Recorder::Impl::collectiveEnqueued(int64_t number)
{
    if (recording() && m_activity)
        m_activity->pop(ContextKind::Collective);
    m_flight->enqueued(number, realtimeNs());
}

void Recorder::Impl::transfer(int64_t number, bool ended)
{
    const int64_t timeNs = realtimeNs();
    if (ended)
        m_flight->ended(number, timeNs);
    else
        m_flight->started(number, timeNs);
    if (recording())
        send(TransferEvent{number, ended, timeNs, monotonicNs()});
}

void Recorder::Impl::memoryHeld(const observe::HeldMemory &change)
{
    switch (change.place) {
    case MemoryPlace::Pinned:
        return m_held.pinned->change(change);
    case MemoryPlace::Nvme:
        return m_held.nvme->change(change);
    case MemoryPlace::Device: // their allocators are followed
    case MemoryPlace::Host:
        break;
    }
}

void Recorder::Impl::sample()
{
    if (!recording() || m_options.memory.empty() || !m_sampling.take())
        return;
    const int64_t step = m_step.load(std::memory_order_relaxed);
    for (size_t source = 0; source < m_options.memory.size(); ++source) {
        if (!m_options.memory[source]->isInUse())
            continue;
        if (const auto reading = m_options.memory[source]->read())
            m_mailbox.send(m_mailbox.samples, MemorySample{source, step, *reading});
        else
            m_mailbox.unread.fetch_add(1, std::memory_order_relaxed);
    }
}

void Recorder::Impl::note(EventKind kind, std::string text, std::string detailJson, std::optional<int64_t> step)
{
    send(NoteEvent{std::make_unique<NoteEvent::Payload>(
        NoteEvent::Payload{kind, realtimeNs(), step.value_or(m_step.load()), std::move(text), std::move(detailJson)})});
}

/// Between two steps: no span of the train thread is open, and none is asked for that the level before began.
void Recorder::Impl::setLevel(RecordLevel level)
{
    if (m_level == RecordLevel::Off)
        startLate(level);
    if (m_activity) {
        if (auto set = m_activity->setLevel(level); !set)
            note(EventKind::Warning, "Kernels are not recorded. " + set.error().text, {});
    }
    m_sampling.setLimit(level == RecordLevel::Full ? kSamplesFull : kSamplesLight);
    if ((level == RecordLevel::Full) != (m_level == RecordLevel::Full))
        recordAllocations(level == RecordLevel::Full);
    m_level = level;
}

/// What a rank that was not recorded began without.
void Recorder::Impl::startLate(RecordLevel level)
{
    RecorderOptions later;
    later.level = level;
    later.device = m_options.device;
    std::vector<std::string> warnings;
    std::unique_ptr<MetricsSampler> metrics = m_hasMetrics ? nullptr : startMetrics(later, warnings);
    m_hasMetrics = m_hasMetrics || metrics;
    std::unique_ptr<ActivitySource> activity;
    if (!m_activity) {
        auto started = startActivity(later);
        if (started)
            activity = std::move(*started);
        else
            warnings.push_back("Kernels are not recorded. " + started.error().text);
    }
    if (activity)
        m_activity = activity.get();
    m_thread.adopt(std::move(activity), std::move(metrics));
    for (std::string &warning : warnings)
        note(EventKind::Warning, std::move(warning), {});
}

Result<std::unique_ptr<Recorder>> Recorder::open(RecorderOptions options)
{
    if (!options.memoryTag)
        options.memoryTag = std::make_shared<CurrentMemoryTag>();
    std::vector<std::string> warnings;
    auto activity = startActivity(options);
    if (activity)
        options.activity = std::move(*activity);
    else
        warnings.push_back("Kernels are not recorded. " + activity.error().text);

    const bool endsKnown = options.device.kind == DeviceKind::Cpu || options.activity;
    auto flight = FlightRing::create(options.flight, options.rank, options.worldSize, endsKnown);
    if (!flight)
        return tl::unexpected(flight.error());
    store::WriterOptions writerOptions;
    writerOptions.retention.keepSteps = options.keepSteps;
    writerOptions.retention.keepFirst = options.keepFirst;
    writerOptions.retention.maxBytes = static_cast<int64_t>(options.maxGib * (int64_t{1} << 30));
    auto writer = store::Writer::open(options.database, writerOptions);
    if (!writer)
        return tl::unexpected(writer.error());

    auto ids = FirstIds::of(*writer);
    if (!ids)
        return tl::unexpected(ids.error());

    auto metrics = startMetrics(options, warnings);
    std::unique_ptr<Recorder> recorder(new Recorder(
        std::make_unique<Impl>(std::move(options), std::move(*writer), *ids, std::move(*flight), std::move(metrics))));
    for (std::string &warning : warnings) {
        spdlog::warn("{}", warning);
        recorder->m_impl->note(EventKind::Warning, std::move(warning), {});
    }
    return recorder;
}

Recorder::Recorder(std::unique_ptr<Impl> impl)
    : m_impl(std::move(impl))
{
}

Recorder::~Recorder()
{
    if (auto closed = close(std::nullopt); !closed)
        spdlog::error("The recording could not be ended: {}", closed.error().text);
}

Result<> Recorder::close(std::optional<int> exitCode)
{
    return m_impl->close(exitCode);
}

RecorderLosses Recorder::losses() const
{
    return m_impl->thread().losses();
}

StepFigures Recorder::figuresOf(int64_t step) const
{
    return m_impl->thread().figuresOf(step);
}

void Recorder::onUnits(std::span<const observe::UnitInfo> units)
{
    m_impl->onUnits(units);
}

int32_t Recorder::onCommunicator(const observe::CommunicatorInfo &info)
{
    return m_impl->onCommunicator(info);
}

void Recorder::configurationChanged(const observe::ConfigurationInfo &info)
{
    m_impl->configurationChanged(info);
}

void Recorder::stepBegan(int64_t number)
{
    m_impl->stepBegan(number);
}

void Recorder::stepEnded(const observe::StepResult &result)
{
    m_impl->stepEnded(result);
}

void Recorder::stepValues(int64_t number, const observe::StepResult &result)
{
    m_impl->send(StepValuesEvent{std::make_unique<StepValuesEvent::Payload>(StepValuesEvent::Payload{number, result})});
}

int64_t Recorder::beginSpan(const observe::SpanInfo &info)
{
    return m_impl->beginSpan(info);
}

void Recorder::endSpan(int64_t span)
{
    m_impl->endSpan(span);
}

void Recorder::beginDeviceWork(Phase phase, observe::UnitIndex unit)
{
    m_impl->beginDeviceWork(phase, unit);
}

void Recorder::endDeviceWork()
{
    m_impl->endDeviceWork();
}

int64_t Recorder::beginCollective(const observe::CollectiveInfo &info)
{
    return m_impl->beginCollective(info);
}

void Recorder::collectiveEnqueued(int64_t collective)
{
    m_impl->collectiveEnqueued(collective);
}

void Recorder::collectiveStarted(int64_t collective)
{
    m_impl->transfer(collective, false);
}

void Recorder::collectiveEnded(int64_t collective)
{
    m_impl->transfer(collective, true);
}

observe::MemoryTag Recorder::setMemoryTag(observe::MemoryTag tag)
{
    return m_impl->tag()->set(tag);
}

void Recorder::memoryHeld(const observe::HeldMemory &change)
{
    m_impl->memoryHeld(change);
}

void Recorder::sampleMemory()
{
    m_impl->sample();
}

void Recorder::event(EventKind kind, std::string_view text, std::string_view detailJson, std::optional<int64_t> step)
{
    m_impl->note(kind, std::string(text), std::string(detailJson), step);
}

} // namespace shardscope::collect
