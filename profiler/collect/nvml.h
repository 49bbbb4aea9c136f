// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shardscope::collect {

/// What the driver says of one GPU at one moment; what it does not tell is empty.
struct GpuReading
{
    std::optional<double> utilization; ///< share of the last sample period in which a kernel ran, 0 to 1
    std::optional<double> powerWatts;
    std::optional<double> temperatureCelsius;
    std::optional<double> smClockHertz;
    std::optional<double> throttleReasons; ///< NVML's bit mask
    std::optional<double> pcieRxBytesPerSecond;
    std::optional<double> pcieTxBytesPerSecond;
    std::optional<int64_t> deviceUsedBytes;
    std::optional<int64_t> processUsedBytes; ///< of this process; empty in containers that hide process ids
};

/// One GPU through NVML, which is found at run time.
class Nvml
{
public:
    /// By PCI address ("00000000:1B:00.0"), because CUDA's ordinals need not be NVML's. An error says what is missing.
    static Result<std::unique_ptr<Nvml>> open(const std::string &pciAddress);
    ~Nvml();

    GpuReading read();
    /// "580.95.05"; empty where it is not told.
    std::string driverVersion() const;

private:
    struct Api;
    Nvml(std::unique_ptr<Api> api, void *device);
    std::unique_ptr<Api> m_api;
    void *m_device;
};

} // namespace shardscope::collect
