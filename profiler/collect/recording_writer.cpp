// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/recording_writer.h"

#include "core/base/clock.h"
#include "core/base/text.h"
#include "profiler/collect/host_facts.h"
#include "profiler/collect/kernel_name.h"
#include "profiler/collect/peak_rate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unistd.h>

namespace shardscope::collect {

namespace {

constexpr int64_t kDeviceId = 1;
/// Steps whose ids are still needed for late records.
constexpr int64_t kStepsKnown = 1024;
/// Collectives that may still be told more of once they have ended, and that may still end.
constexpr int64_t kEndedKnown = 4096;
constexpr int64_t kCollectivesKnown = 1 << 16;
constexpr int64_t kForgetEvery = 1024;

std::string_view toText(MemoryPlace place)
{
    switch (place) {
    case MemoryPlace::Device:
        return "device";
    case MemoryPlace::Pinned:
        return "pinned";
    case MemoryPlace::Host:
        return "host";
    case MemoryPlace::Nvme:
        return "nvme";
    }
    return "device";
}

/// The operation of an NCCL kernel whose call is not known.
Operation operationOf(std::string_view kernel)
{
    static constexpr std::pair<std::string_view, Operation> kNames[] = {{"AllGather", Operation::AllGather},
                                                                        {"ReduceScatter", Operation::ReduceScatter},
                                                                        {"AllReduce", Operation::AllReduce},
                                                                        {"AlltoAll", Operation::AllToAll},
                                                                        {"SendRecv", Operation::Send}};
    for (const auto &[name, operation] : kNames) {
        if (kernel.find(name) != std::string_view::npos)
            return operation;
    }
    return Operation::Broadcast;
}

constexpr SpanCategory categoryOf(StreamRole role)
{
    switch (role) {
    case StreamRole::Communication:
        return SpanCategory::Communication;
    case StreamRole::Compute:
        return SpanCategory::Compute;
    case StreamRole::Copies:
    case StreamRole::SetUp:
        break;
    }
    return SpanCategory::Copy;
}

template <typename Event>
constexpr bool belongsToStep(const Event &event)
{
    return event.step != kNoStep;
}

} // namespace

Result<FirstIds> FirstIds::of(const store::Writer &writer)
{
    FirstIds ids;
    const std::pair<const char *, int64_t *> tables[] = {{"span", &ids.span},
                                                         {"memory", &ids.memory},
                                                         {"step", &ids.step},
                                                         {"collective", &ids.collective},
                                                         {"communicator", &ids.communicator},
                                                         {"lane", &ids.lane}};
    for (const auto &[table, id] : tables) {
        auto next = writer.nextId(table);
        if (!next)
            return tl::unexpected(next.error());
        *id = *next;
    }
    return ids;
}

RecordingWriter::RecordingWriter(store::Writer writer, FirstIds ids, const RecorderOptions &options,
                                 const TextTable &texts, FlightRing &flight, FinishedStep finished)
    : m_options(options)
    , m_texts(texts)
    , m_flight(flight)
    , m_writer(std::move(writer))
    , m_level(options.level)
    , m_cuda(options.device.kind == DeviceKind::Cuda)
    , m_next(ids)
    , m_lanes(m_next.lane, kDeviceId, [this](const store::LaneRow &row) { m_writer.put(row); })
    , m_steps(options.device.kind,
              [this, finished = std::move(finished)](const store::StepRow &row) {
                  m_writer.put(row);
                  if (row.endNs)
                      finished(row);
              })
    , m_collectives([this](const store::CollectiveRow &row) { m_writer.put(row); })
    , m_brackets([this](const PhaseBrackets::Bracket &bracket) {
        addSpan({.laneId = m_lanes.phases(),
                 .startNs = bracket.startNs,
                 .nameId = m_writer.nameId(shardscope::toText(bracket.context.phase)),
                 .category = SpanCategory::Compute,
                 .phase = bracket.context.phase,
                 .stepId = stepId(bracket.context.step),
                 .unitId = unitId(bracket.context.unit)},
                bracket.endNs);
    })
    , m_join({.work = [this](const JoinedRecord &joined) { handle(joined); },
              .owes = [this](int64_t step) { m_steps.deviceOwes(step); },
              .paid = [this](int64_t step, int64_t endNs) { m_steps.devicePaid(step, endNs); }})
{
    describe();
}

void RecordingWriter::describe()
{
    m_process = {.attempt = m_options.attempt,
                 .rank = m_options.rank,
                 .localRank = m_options.localRank,
                 .worldSize = m_options.worldSize,
                 .host = hostName(),
                 .pid = ::getpid(),
                 .parentPid = ::getppid(),
                 .command = m_options.command,
                 .startedNs = realtimeNs()};
    m_writer.put(m_process);

    const auto meta = [this](std::string key, std::string value) {
        m_writer.put(store::MetaRow{.key = std::move(key), .value = std::move(value)});
    };
    meta("source", "shardscope");
    meta("origin_ns", std::to_string(m_options.originNs));
    meta("schema_version", std::to_string(store::kSchemaVersion));
    if (m_options.modelFlopsPerToken > 0)
        meta("model_flops_per_token", formatDouble(m_options.modelFlopsPerToken));
    for (const auto &[key, value] : m_options.meta)
        meta(key, value);

    const DeviceDescription &device = m_options.device;
    m_writer.put(store::DeviceRow{.deviceId = kDeviceId,
                                  .uuid = device.uuid,
                                  .pci = device.pci,
                                  .ordinal = device.ordinal,
                                  .kind = device.kind,
                                  .name = device.name,
                                  .memoryBytes = device.memoryBytes.value_or(0),
                                  .peakFlops = peakFlops(device, m_options.compute)});
    m_writer.put(store::ConfigRow{.configId = 1,
                                  .firstStep = m_options.firstStep,
                                  .fullJson = m_options.configurationJson,
                                  .origin = "start",
                                  .requestedNs = m_process.startedNs});
    // The phases stand above all else, on every rank and whatever happens first.
    if (m_level != RecordLevel::Off)
        m_lanes.phases();
}

std::optional<int64_t> RecordingWriter::stepId(int64_t number) const
{
    const auto found = m_stepIds.find(number);
    return found == m_stepIds.end() ? std::nullopt : std::optional(found->second);
}

/// A toggle is of the step that it comes into force at, which is the next to begin: it will have the next id.
std::optional<int64_t> RecordingWriter::stepIdOfNote(int64_t number) const
{
    return m_lastStep && number == *m_lastStep + 1 ? std::optional(m_next.step) : stepId(number);
}

std::optional<int64_t> RecordingWriter::unitId(observe::UnitIndex unit) const
{
    return unit < 0 ? std::nullopt : std::optional(int64_t{unit} + 1);
}

std::optional<int64_t> RecordingWriter::collectiveId(int64_t number) const
{
    return number < 0 ? std::nullopt : std::optional(m_next.collective + number);
}

void RecordingWriter::take(Event &&event)
{
    std::visit([this](const auto &value) { handle(value); }, event);
}

void RecordingWriter::addSpan(store::SpanRow row, int64_t endNs)
{
    row.spanId = m_next.span++;
    row.durationNs = endNs - row.startNs;
    m_writer.add(row);
}

void RecordingWriter::handle(const SpanEvent &event)
{
    const int64_t endNs = event.startNs + event.durationNs;
    store::SpanRow row{.laneId = m_lanes.thread(event.thread),
                       .startNs = event.startNs,
                       .nameId = m_writer.nameId(m_texts.text(event.name)),
                       .category = event.category,
                       .phase = event.phase,
                       .stepId = stepId(event.step),
                       .unitId = unitId(event.unit),
                       .collectiveId = collectiveId(event.collective),
                       .bytes = event.bytes > 0 ? std::optional(event.bytes) : std::nullopt};
    // A host that launches kernels computes nothing itself.
    if (m_cuda && row.category != SpanCategory::Idle)
        row.category = SpanCategory::Host;
    addSpan(row, endNs);

    const Collectives::Open *collective = m_collectives.find(event.collective);
    m_steps.span({.startNs = event.startNs,
                  .endNs = endNs,
                  .category = row.category,
                  .phase = event.phase,
                  .operation = collective ? std::optional(collective->row.operation) : std::nullopt,
                  .laneId = row.laneId,
                  .nests = true});
    if (event.bracket && !m_cuda) {
        row.laneId = m_lanes.phases();
        addSpan(row, endNs);
    }
}

void RecordingWriter::handle(const CollectiveEvent &event)
{
    const store::CollectiveRow row{.collectiveId = m_next.collective + event.number,
                                   .communicatorId = m_next.communicator + event.communicator,
                                   .sequence = event.sequence,
                                   .operation = event.operation,
                                   .unitId = unitId(event.unit),
                                   .stepId = stepId(event.step),
                                   .phase = event.phase,
                                   .dtype = std::string(m_texts.text(event.dtype)),
                                   .inputBytes = event.inputBytes,
                                   .outputBytes = event.outputBytes,
                                   .enqueuedNs = event.enqueuedNs};
    m_collectives.began(row, event);
    if (event.number % kForgetEvery == 0)
        m_collectives.forgetBefore(event.number - kEndedKnown, event.number - kCollectivesKnown);
    if (!m_cuda && belongsToStep(event))
        m_steps.collectiveOwes(event.step);
}

void RecordingWriter::handle(const TransferEvent &event)
{
    const auto open = m_collectives.transfer(event);
    if (!open)
        return;
    if (belongsToStep(*open))
        m_steps.collectivePaid(open->step);
    const store::CollectiveRow &row = open->row;
    if (!row.startedNs)
        return;
    const int64_t lane = m_lanes.communication();
    addSpan({.laneId = lane,
             .startNs = *row.startedNs,
             .nameId = m_writer.nameId(shardscope::toText(row.operation)),
             .category = SpanCategory::Communication,
             .phase = row.phase,
             .stepId = row.stepId,
             .unitId = row.unitId,
             .collectiveId = row.collectiveId,
             .bytes = std::max(row.inputBytes, row.outputBytes)},
            *row.endedNs);
    m_steps.span({.startNs = *row.startedNs,
                  .endNs = *row.endedNs,
                  .category = SpanCategory::Communication,
                  .phase = row.phase,
                  .operation = row.operation,
                  .laneId = lane});
}

void RecordingWriter::handle(const StepBeganEvent &event)
{
    const int64_t id = m_next.step++;
    m_stepIds.insert_or_assign(event.number, id);
    m_lastStep = event.number;
    m_stepIds.erase(event.number - kStepsKnown);
    m_steps.began(
        {.stepId = id, .number = event.number, .configId = m_configId, .level = m_level, .startNs = event.startNs},
        event.monotonicNs);
}

void RecordingWriter::handle(const StepEndedEvent &event)
{
    const StepEndedEvent::Payload &payload = *event.payload;
    std::optional<int64_t> peakBytes;
    for (size_t source = 0; source < payload.peaks.size(); ++source) {
        const auto &peak = payload.peaks[source];
        if (!peak)
            continue;
        if (source == 0)
            peakBytes = peak->reading.allocatedBytes;
        const int64_t memoryId = addMemory(source, peak->reading, payload.number, true, {});
        for (size_t row = 0; row < peak->units.size(); ++row) {
            for (size_t category = 0; category < kMemoryCategories; ++category) {
                const int64_t bytes = peak->units[row][category];
                if (bytes == 0)
                    continue;
                m_writer.add(store::MemoryPeakRow{.memoryId = memoryId,
                                                  .unitId = unitId(static_cast<observe::UnitIndex>(row) - 1),
                                                  .category = static_cast<MemoryCategory>(category),
                                                  .bytes = bytes});
            }
        }
    }
    m_steps.ended(payload.number, payload.monotonicNs, payload.result, peakBytes);
    addLossScale(payload.number, payload.result);
}

void RecordingWriter::handle(const StepValuesEvent &event)
{
    m_steps.values(event.payload->number, event.payload->result);
    addLossScale(event.payload->number, event.payload->result);
}

/// One value a step, at the host's end of it.
void RecordingWriter::addLossScale(int64_t step, const observe::StepResult &result)
{
    const auto timeNs = m_steps.hostEndNs(step);
    if (result.lossScale && timeNs)
        m_writer.add(
            store::MetricRow{.timeNs = *timeNs, .nameId = m_writer.nameId("loss_scale"), .value = *result.lossScale});
}

void RecordingWriter::handle(const UnitsEvent &event)
{
    for (size_t i = 0; i < event.units->size(); ++i) {
        const observe::UnitInfo &unit = (*event.units)[i];
        m_writer.put(store::UnitRow{.unitId = static_cast<int64_t>(i) + 1,
                                    .name = unit.name,
                                    .parentUnitId = unitId(unit.parent),
                                    .kind = unit.kind,
                                    .ordinal = unit.ordinal,
                                    .parameters = unit.parameters,
                                    .parameterBytes = unit.parameterBytes,
                                    .shardBytes = unit.shardBytes,
                                    .paddingBytes = unit.paddingBytes});
    }
}

void RecordingWriter::handle(const CommunicatorEvent &event)
{
    const observe::CommunicatorInfo &info = *event.info;
    m_writer.put(store::CommunicatorRow{.communicatorId = m_next.communicator + event.number,
                                        .uid = info.uid,
                                        .backend = info.backend,
                                        .size = static_cast<int64_t>(info.members.size()),
                                        .rankIn = info.rankInIt,
                                        .membersJson = fmt::format("[{}]", fmt::join(info.members, ","))});
}

void RecordingWriter::handle(const NoteEvent &event)
{
    const NoteEvent::Payload &payload = *event.payload;
    m_writer.add(store::EventRow{.timeNs = payload.timeNs,
                                 .stepId = stepIdOfNote(payload.step),
                                 .kind = payload.kind,
                                 .text = payload.text,
                                 .detailJson = payload.detailJson});
}

void RecordingWriter::handle(const ConfigurationEvent &event)
{
    const ConfigurationEvent::Payload &payload = *event.payload;
    m_writer.put(store::ConfigRow{.configId = ++m_configId,
                                  .firstStep = payload.firstStep,
                                  .changedJson = payload.changedJson,
                                  .fullJson = payload.fullJson,
                                  .origin = payload.origin,
                                  .requestedNs = payload.requestedNs});
    if (m_level == RecordLevel::Full && payload.level != RecordLevel::Full)
        m_fullUntilNs = realtimeNs();
    m_level = payload.level;
    if (m_level != RecordLevel::Off)
        m_lanes.phases();
}

void RecordingWriter::note(EventKind kind, std::string text, std::string detailJson)
{
    m_writer.add(store::EventRow{
        .timeNs = realtimeNs(), .kind = kind, .text = std::move(text), .detailJson = std::move(detailJson)});
}

void RecordingWriter::take(const MemorySample &sample, const DeviceMemoryUse &use)
{
    addMemory(sample.source, sample.reading, sample.step, false, use);
}

int64_t RecordingWriter::addMemory(size_t source, const MemoryReading &reading, int64_t step, bool isPeak,
                                   const DeviceMemoryUse &use)
{
    checkSum(source, reading);
    const MemorySource &from = *m_options.memory[source];
    const bool onDevice = from.place() == MemoryPlace::Device;
    m_writer.add(store::MemoryRow{.memoryId = m_next.memory,
                                  .place = std::string(toText(from.place())),
                                  .deviceId = onDevice ? std::optional(kDeviceId) : std::nullopt,
                                  .timeNs = reading.timeNs,
                                  .stepId = stepId(step),
                                  .isStepPeak = isPeak,
                                  .categoryBytes = reading.categories,
                                  .roundingBytes = reading.roundingBytes,
                                  .pendingFreeBytes = reading.pendingFreeBytes,
                                  .allocatedBytes = reading.allocatedBytes,
                                  .activeBytes = reading.activeBytes,
                                  .reservedBytes = reading.reservedBytes,
                                  .processUsedBytes = onDevice ? use.processUsedBytes : std::nullopt,
                                  .deviceUsedBytes = onDevice ? use.deviceUsedBytes : std::nullopt});
    return m_next.memory++;
}

void RecordingWriter::checkSum(size_t source, const MemoryReading &reading)
{
    // The first ten are said; a broken sum is broken at every sample.
    if (reading.differenceBytes == 0 || ++m_sumWarnings > 10)
        return;
    note(EventKind::Warning,
         fmt::format(
             "The memory categories do not sum to what the {} allocator has given out: they are off by {} bytes.",
             toText(m_options.memory[source]->place()), reading.differenceBytes),
         fmt::format("{{\"difference_bytes\": {}, \"allocated_bytes\": {}}}", reading.differenceBytes,
                     reading.allocatedBytes));
}

void RecordingWriter::take(const AllocationEvent &allocation)
{
    const MemorySource &from = *m_options.memory[allocation.source];
    const AllocationRecord &record = allocation.record;
    m_writer.add(
        store::AllocationRow{.place = std::string(toText(from.place())),
                             .deviceId = from.place() == MemoryPlace::Device ? std::optional(kDeviceId) : std::nullopt,
                             .address = static_cast<int64_t>(record.address),
                             .bytes = record.bytes,
                             .category = record.tag.category,
                             .unitId = unitId(record.tag.unit),
                             .allocatedNs = record.allocatedNs,
                             .freedNs = record.freedNs ? std::optional(record.freedNs) : std::nullopt});
}

void RecordingWriter::take(const std::vector<Metric> &metrics)
{
    for (const Metric &metric : metrics) {
        m_writer.add(store::MetricRow{.deviceId = metric.ofDevice ? std::optional(kDeviceId) : std::nullopt,
                                      .timeNs = metric.timeNs,
                                      .nameId = m_writer.nameId(metric.name),
                                      .value = metric.value});
    }
}

void RecordingWriter::take(ActivityBatch &&batch)
{
    m_deviceDropped += batch.dropped;
    for (std::string &warning : batch.warnings)
        note(EventKind::Warning, std::move(warning));
    m_join.take(std::move(batch.records));
}

/// NCCL connects ranks within the first calls that need it, by copies in streams of its own: they are made while a
/// collective is enqueued, and are none of it.
bool RecordingWriter::isSetUp(const JoinedRecord &joined) const
{
    if (joined.record.kind == ActivityKind::Kernel || !joined.collective)
        return false;
    const Collectives::Open *collective = m_collectives.find(*joined.collective);
    return collective && collective->stream && *collective->stream != joined.record.streamId;
}

void RecordingWriter::handle(const JoinedRecord &joined)
{
    const ActivityRecord &record = joined.record;
    if (record.kind == ActivityKind::Call) {
        handleCall(joined);
        return;
    }
    const bool nccl = record.kind == ActivityKind::Kernel && isNcclKernel(record.name);
    std::optional<Collectives::Open> open;
    if (joined.collective && nccl) {
        open = m_collectives.deviceWork(*joined.collective, record.startNs, record.endNs);
        m_flight.started(*joined.collective, record.startNs);
        m_flight.ended(*joined.collective, record.endNs);
    }
    const bool setUp = isSetUp(joined);
    const StreamRole role = nccl                                  ? StreamRole::Communication
                            : record.kind == ActivityKind::Kernel ? StreamRole::Compute
                            : setUp                               ? StreamRole::SetUp
                                                                  : StreamRole::Copies;
    store::SpanRow row{.laneId = m_lanes.stream(record.contextId, record.streamId, role),
                       .startNs = record.startNs,
                       .nameId = m_writer.nameId(record.name),
                       .category = categoryOf(role),
                       .correlation = record.correlation,
                       .bytes = record.bytes > 0 ? std::optional(record.bytes) : std::nullopt};
    if (joined.context) {
        row.phase = joined.context->phase;
        row.stepId = stepId(joined.context->step);
        if (!setUp)
            row.unitId = unitId(joined.context->unit);
    }
    if (joined.collective && !setUp)
        row.collectiveId = collectiveId(*joined.collective);
    if (open) {
        row.phase = open->row.phase;
        row.stepId = open->row.stepId;
        row.unitId = open->row.unitId;
        row.bytes = std::max(open->row.inputBytes, open->row.outputBytes);
    }
    if (record.kind == ActivityKind::Kernel && isFullAt(record.startNs)) {
        m_writer.add(store::KernelRow{.spanId = m_next.span,
                                      .laneId = row.laneId,
                                      .startNs = row.startNs,
                                      .grid = record.grid,
                                      .block = record.block,
                                      .registers = record.registers,
                                      .sharedBytes = record.sharedBytes,
                                      .graphId = record.graphId ? std::optional(record.graphId) : std::nullopt});
    }
    addSpan(row, record.endNs);
    m_steps.span(
        {.startNs = record.startNs,
         .endNs = record.endNs,
         .category = row.category,
         .phase = row.phase,
         .operation = nccl ? std::optional(open ? open->row.operation : operationOf(record.name)) : std::nullopt,
         .laneId = row.laneId});
    if (row.category == SpanCategory::Compute && joined.context && belongsToStep(*joined.context) &&
        !joined.context->aside)
        m_brackets.kernel(*joined.context, record.startNs, record.endNs);
}

void RecordingWriter::handleCall(const JoinedRecord &joined)
{
    const ActivityRecord &record = joined.record;
    if (!isFullAt(record.startNs))
        return;
    store::SpanRow row{.laneId = m_lanes.thread(static_cast<int32_t>(record.threadId)),
                       .startNs = record.startNs,
                       .nameId = m_writer.nameId(record.name),
                       .category = SpanCategory::Host,
                       .correlation = record.correlation};
    if (joined.context) {
        row.phase = joined.context->phase;
        row.stepId = stepId(joined.context->step);
        row.unitId = unitId(joined.context->unit);
    }
    if (joined.collective)
        row.collectiveId = collectiveId(*joined.collective);
    addSpan(row, record.endNs);
}

Result<> RecordingWriter::flush(int64_t dropped)
{
    m_steps.finish(realtimeNs());
    return m_writer.flush(dropped + std::exchange(m_deviceDropped, 0));
}

Result<> RecordingWriter::close(int64_t dropped, std::optional<int> exitCode)
{
    m_join.drain();
    m_brackets.close();
    m_steps.finish(realtimeNs(), true);
    m_process.endedNs = realtimeNs();
    m_process.exitCode = exitCode;
    m_writer.put(m_process);
    return m_writer.close(dropped + std::exchange(m_deviceDropped, 0));
}

} // namespace shardscope::collect
