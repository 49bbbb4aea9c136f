// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/cupti_source.h"

#include "profiler/collect/background_thread.h"
#include "profiler/collect/kernel_name.h"

#include <array>
#include <chrono>

namespace shardscope::collect {

namespace {

// Shorter than the recorder's half second, so that each of its commits finds something.
constexpr auto kFlushPeriod = std::chrono::milliseconds(300);
// Kineto's limit. The default of 250 buffers lets 25 million records pile up on the device, after which times are lost.
constexpr size_t kDeviceBuffers = 20;

constexpr CUpti_ExternalCorrelationKind externalKind(ContextKind kind)
{
    return kind == ContextKind::Span ? CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
                                     : CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
}

std::string_view copyName(uint8_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "memcpy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "memcpy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "memcpy device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "memcpy host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "memcpy peer to peer";
    default:
        return "memcpy";
    }
}

void CUPTIAPI bufferRequested(uint8_t **buffer, size_t *size, size_t *maximumRecords)
{
    CuptiBuffers::requested(buffer, size, maximumRecords);
}

void CUPTIAPI bufferCompleted(CUcontext context, uint32_t streamId, uint8_t *buffer, size_t size, size_t validSize)
{
    CuptiBuffers::completed(context, streamId, buffer, size, validSize);
}

void CUPTIAPI ignoreCallback(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

ActivityRecord kernelRecord(const CUpti_ActivityKernel10 &kernel)
{
    ActivityRecord record;
    record.kind = ActivityKind::Kernel;
    record.startNs = static_cast<int64_t>(kernel.start);
    record.endNs = static_cast<int64_t>(kernel.end);
    record.correlation = kernel.correlationId;
    record.contextId = kernel.contextId;
    record.streamId = kernel.streamId;
    record.grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
    record.block = {kernel.blockX, kernel.blockY, kernel.blockZ};
    record.registers = kernel.registersPerThread;
    record.sharedBytes = int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory;
    record.graphId = kernel.graphId;
    return record;
}

template <typename Copy>
ActivityRecord copyRecord(const Copy &copy, ActivityKind kind, std::string_view name)
{
    ActivityRecord record;
    record.kind = kind;
    record.startNs = static_cast<int64_t>(copy.start);
    record.endNs = static_cast<int64_t>(copy.end);
    record.correlation = copy.correlationId;
    record.contextId = copy.contextId;
    record.streamId = copy.streamId;
    record.bytes = static_cast<int64_t>(copy.bytes);
    record.graphId = copy.graphId;
    record.name = name;
    return record;
}

} // namespace

CuptiSource::CuptiSource(CuptiApi api)
    : m_api(std::move(api))
    , m_calls(m_api)
{
}

CuptiSource::~CuptiSource()
{
    stop();
}

Result<> CuptiSource::subscribe()
{
    // Not for callbacks: it tells whether another profiler is in this process, and keeps others out.
    const CUptiResult result = m_api.subscribe(&m_subscriber, ignoreCallback, nullptr);
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        return fail("Another profiler (Nsight, cuda-gdb or a CUPTI_INJECTION library) is attached to this process, and "
                    "CUPTI serves only one. Start the run without it to see kernels.");
    }
    if (result != CUPTI_SUCCESS)
        return fail("CUPTI can't be used: {}.", m_api.text(result));
    return {};
}

Result<> CuptiSource::start(RecordLevel level)
{
    m_level = level;
    if (auto subscribed = subscribe(); !subscribed)
        return subscribed;
    size_t limit = kDeviceBuffers;
    size_t limitBytes = sizeof limit;
    if (const CUptiResult result =
            m_api.setAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &limitBytes, &limit);
        result != CUPTI_SUCCESS)
        m_warnings.push_back("CUPTI's device memory could not be limited: " + m_api.text(result));
    // The kernel's number of a thread, as everywhere else: CUPTI's own is the lower half of pthread_self().
    if (const CUptiResult result = m_api.setThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM); result != CUPTI_SUCCESS)
        m_warnings.push_back("Threads of CUDA's calls can't be named: " + m_api.text(result));
    if (const CUptiResult result = m_api.registerCallbacks(bufferRequested, bufferCompleted); result != CUPTI_SUCCESS)
        return fail("CUPTI takes no buffers: {}.", m_api.text(result));
    if (auto enabled = enableKinds(); !enabled)
        return enabled;
    m_flusher = startBackgroundThread("cupti flush", [this] { flushLoop(); });
    return {};
}

Result<> CuptiSource::setLevel(RecordLevel level)
{
    const std::lock_guard lock(m_mutex); // warnings are taken by another thread
    if (level == m_level)
        return {};
    for (const CUpti_ActivityKind kind : std::exchange(m_enabled, {}))
        m_api.disable(kind);
    m_level = level;
    return level == RecordLevel::Off ? Result<>{} : enableKinds();
}

Result<> CuptiSource::enableKinds()
{
    static constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                          CUPTI_ACTIVITY_KIND_MEMCPY,
                                          CUPTI_ACTIVITY_KIND_MEMCPY2, // between devices
                                          CUPTI_ACTIVITY_KIND_MEMSET,
                                          CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                          CUPTI_ACTIVITY_KIND_RUNTIME,
                                          CUPTI_ACTIVITY_KIND_DRIVER};
    for (const CUpti_ActivityKind kind : kKinds) {
        const CUptiResult result = m_api.enable(kind);
        if (result == CUPTI_SUCCESS) {
            m_enabled.push_back(kind);
            continue;
        }
        if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            return fail("CUPTI records no kernels: {}.", m_api.text(result));
        m_warnings.push_back(
            fmt::format("CUPTI's records of kind {} are missing: {}", static_cast<int>(kind), m_api.text(result)));
    }
    // Calls could be enabled one by one in place of their kinds, but once a kind was enabled in this process that does
    // nothing any more: kernels and copies had no unit then.
    const CUptiResult result = m_level == RecordLevel::Full ? m_calls.mute(m_api) : m_calls.muteAllButLaunches(m_api);
    if (result != CUPTI_SUCCESS)
        m_warnings.push_back("CUPTI records calls that are of no use too: " + m_api.text(result));
    return {};
}

void CuptiSource::push(ContextKind kind, uint64_t value)
{
    m_api.push(externalKind(kind), value);
}

void CuptiSource::pop(ContextKind kind)
{
    uint64_t last = 0;
    m_api.pop(externalKind(kind), &last);
}

std::optional<uint32_t> CuptiSource::streamId(const void *stream)
{
    if (const auto found = m_streamIds.find(stream); found != m_streamIds.end())
        return found->second;
    uint32_t id = 0;
    const auto handle = static_cast<CUstream>(const_cast<void *>(stream));
    if (m_api.getStreamId(nullptr, handle, 0, &id) != CUPTI_SUCCESS)
        return std::nullopt;
    m_streamIds.emplace(stream, id);
    return id;
}

void CuptiSource::flushLoop()
{
    std::unique_lock lock(m_mutex);
    while (!m_wake.wait_for(lock, kFlushPeriod, [this] { return m_stopping; })) {
        lock.unlock();
        flush(0);
        lock.lock();
    }
}

void CuptiSource::flush(uint32_t flag)
{
    m_api.flushAll(flag);
    size_t dropped = 0;
    if (m_api.getDropped(nullptr, 0, &dropped) == CUPTI_SUCCESS)
        m_dropped += static_cast<int64_t>(dropped);
}

ActivityBatch CuptiSource::take()
{
    ActivityBatch batch;
    for (const CuptiBuffers::Full &buffer : CuptiBuffers::take()) {
        read(buffer, batch);
        CuptiBuffers::release(buffer);
    }
    batch.dropped += m_dropped.exchange(0);
    const std::lock_guard lock(m_mutex);
    batch.warnings = std::exchange(m_warnings, {});
    return batch;
}

ActivityBatch CuptiSource::stop()
{
    if (m_flusher.joinable()) {
        {
            const std::lock_guard lock(m_mutex);
            m_stopping = true;
        }
        m_wake.notify_all();
        m_flusher.join();
        flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    }
    for (const CUpti_ActivityKind kind : std::exchange(m_enabled, {}))
        m_api.disable(kind);
    if (m_subscriber)
        m_api.unsubscribe(std::exchange(m_subscriber, nullptr));
    return take();
}

void CuptiSource::read(const CuptiBuffers::Full &buffer, ActivityBatch &batch)
{
    CUpti_Activity *record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    while ((result = m_api.getNextRecord(buffer.data, buffer.validBytes, &record)) == CUPTI_SUCCESS)
        append(*record, batch);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED)
        batch.warnings.push_back("A buffer of CUPTI's could not be read to its end: " + m_api.text(result));
}

void CuptiSource::append(const CUpti_Activity &activity, ActivityBatch &batch)
{
    ActivityRecord record;
    switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto &kernel = reinterpret_cast<const CUpti_ActivityKernel10 &>(activity);
        record = kernelRecord(kernel);
        record.name = kernelName(kernel.name);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto &copy = reinterpret_cast<const CUpti_ActivityMemcpy6 &>(activity);
        record = copyRecord(copy, ActivityKind::Memcpy, copyName(copy.copyKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto &copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4 &>(activity);
        record = copyRecord(copy, ActivityKind::Memcpy, copyName(copy.copyKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
        record = copyRecord(reinterpret_cast<const CUpti_ActivityMemset4 &>(activity), ActivityKind::Memset, "memset");
        break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
        const auto &call = reinterpret_cast<const CUpti_ActivityAPI &>(activity);
        record.kind = ActivityKind::Call;
        record.startNs = static_cast<int64_t>(call.start);
        record.endNs = static_cast<int64_t>(call.end);
        record.correlation = call.correlationId;
        record.threadId = call.threadId;
        record.launches = call.returnValue == 0 && m_calls.launches(call.kind, call.cbid);
        record.name = m_calls.name(call.kind, call.cbid);
        break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto &external = reinterpret_cast<const CUpti_ActivityExternalCorrelation &>(activity);
        if (external.externalKind != externalKind(ContextKind::Span) &&
            external.externalKind != externalKind(ContextKind::Collective))
            return;
        record.kind = ActivityKind::Correlation;
        record.correlation = external.correlationId;
        record.context =
            external.externalKind == externalKind(ContextKind::Span) ? ContextKind::Span : ContextKind::Collective;
        record.contextValue = external.externalId;
        batch.records.push_back(record);
        return;
    }
    default:
        return;
    }
    // Zero: the device's time was lost, or the record came by a forced flush before its work was done.
    if (record.startNs == 0 || record.endNs < record.startNs)
        ++batch.dropped;
    else
        batch.records.push_back(record);
}

std::string_view CuptiSource::kernelName(const char *mangled)
{
    if (!mangled)
        return "kernel";
    const auto [entry, isNew] = m_kernelNames.try_emplace(mangled);
    if (isNew)
        entry->second = shortKernelName(mangled);
    return entry->second;
}

Result<std::unique_ptr<ActivitySource>> makeCuptiSource()
{
    auto api = CuptiApi::load();
    if (!api)
        return tl::unexpected(api.error());
    return std::make_unique<CuptiSource>(std::move(*api));
}

} // namespace shardscope::collect
