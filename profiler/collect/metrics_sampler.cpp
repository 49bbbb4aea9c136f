// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/metrics_sampler.h"

#include "core/base/clock.h"
#include "profiler/collect/background_thread.h"
#include "profiler/collect/host_facts.h"

#include <chrono>

namespace shardscope::collect {

namespace {

constexpr auto kPeriod = std::chrono::seconds(1);

} // namespace

MetricsSampler::MetricsSampler(std::unique_ptr<Nvml> nvml)
    : m_nvml(std::move(nvml))
    , m_lastMonotonicNs(monotonicNs())
    , m_lastProcessorNs(processorTimeNs())
{
    m_thread = startBackgroundThread("metrics", [this] { loop(); });
}

MetricsSampler::~MetricsSampler()
{
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_wake.notify_all();
    m_thread.join();
}

void MetricsSampler::loop()
{
    std::unique_lock lock(m_mutex);
    while (!m_wake.wait_for(lock, kPeriod, [this] { return m_stopping; })) {
        lock.unlock();
        sample();
        lock.lock();
    }
}

void MetricsSampler::add(std::string_view name, std::optional<double> value, bool ofDevice)
{
    if (!value)
        return;
    const Metric metric{name, realtimeNs(), *value, ofDevice};
    const std::lock_guard lock(m_mutex);
    m_metrics.push_back(metric);
}

void MetricsSampler::sample()
{
    const int64_t nowNs = monotonicNs();
    const int64_t processorNs = processorTimeNs();
    if (const auto resident = residentBytes())
        add("host_rss_bytes", static_cast<double>(*resident), false);
    // Processors kept busy: 1.0 is one of them.
    add("host_cpu_utilization",
        static_cast<double>(processorNs - m_lastProcessorNs) / static_cast<double>(nowNs - m_lastMonotonicNs), false);
    m_lastMonotonicNs = nowNs;
    m_lastProcessorNs = processorNs;
    if (!m_nvml)
        return;

    const GpuReading reading = m_nvml->read();
    add("gpu_utilization", reading.utilization, true);
    add("power_watts", reading.powerWatts, true);
    add("temperature_celsius", reading.temperatureCelsius, true);
    add("sm_clock_hertz", reading.smClockHertz, true);
    add("throttle_reasons", reading.throttleReasons, true);
    add("pcie_rx_bytes_per_second", reading.pcieRxBytesPerSecond, true);
    add("pcie_tx_bytes_per_second", reading.pcieTxBytesPerSecond, true);
    add("device_used_bytes", reading.deviceUsedBytes, true);
    add("process_used_bytes", reading.processUsedBytes, true);
    const std::lock_guard lock(m_mutex);
    m_deviceMemory = {reading.processUsedBytes, reading.deviceUsedBytes};
}

std::vector<Metric> MetricsSampler::take()
{
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_metrics, {});
}

DeviceMemoryUse MetricsSampler::deviceMemory() const
{
    const std::lock_guard lock(m_mutex);
    return m_deviceMemory;
}

} // namespace shardscope::collect
