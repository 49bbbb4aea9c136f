// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/nvml.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace shardscope::collect {

struct Metric
{
    std::string_view name; ///< of docs/contract.md
    int64_t timeNs = 0;
    double value = 0;
    bool ofDevice = false;
};

/// What the driver says of memory, apart from what the allocator knows.
struct DeviceMemoryUse
{
    std::optional<int64_t> processUsedBytes;
    std::optional<int64_t> deviceUsedBytes;
};

/// Reads the metrics of this process and, where there is NVML, of its GPU once a second on a thread of its own: some
/// of NVML's calls take tens of milliseconds.
class MetricsSampler
{
public:
    /// `nvml` may be null.
    explicit MetricsSampler(std::unique_ptr<Nvml> nvml);
    ~MetricsSampler();

    /// What has come since the last call.
    std::vector<Metric> take();
    /// The last reading.
    DeviceMemoryUse deviceMemory() const;

private:
    void loop();
    void sample();
    void add(std::string_view name, std::optional<double> value, bool ofDevice);

    std::unique_ptr<Nvml> m_nvml;
    int64_t m_lastMonotonicNs = 0;
    int64_t m_lastProcessorNs = 0;

    mutable std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_stopping = false;
    std::vector<Metric> m_metrics;
    DeviceMemoryUse m_deviceMemory;
    std::thread m_thread;
};

} // namespace shardscope::collect
