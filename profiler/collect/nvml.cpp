// SPDX-License-Identifier: Apache-2.0
// NVML's interface is stable and small here, so its few declarations are repeated: builds without CUDA's headers read
// metrics too. tests/collect compares them with nvml.h where that is there.
#include "profiler/collect/nvml.h"

#include "profiler/collect/dynamic_library.h"
#include "profiler/collect/nvml_types.h"

#include <array>
#include <unistd.h>
#include <vector>

namespace shardscope::collect {

using namespace nvml;

struct Nvml::Api
{
    DynamicLibrary library;
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    const char *(*errorString)(int) = nullptr;
    int (*driverVersion)(char *, unsigned) = nullptr;
    int (*handleByPci)(const char *, Device *) = nullptr;
    int (*utilization)(Device, Utilization *) = nullptr;
    int (*power)(Device, unsigned *) = nullptr;
    int (*temperature)(Device, int, unsigned *) = nullptr;
    int (*clock)(Device, int, unsigned *) = nullptr;
    int (*throttle)(Device, unsigned long long *) = nullptr;
    int (*pcie)(Device, int, unsigned *) = nullptr;
    int (*memory)(Device, Memory *) = nullptr;
    int (*processes)(Device, unsigned *, ProcessInfo *) = nullptr;

    template <typename Pointer>
    void bind(Pointer &function, const char *name)
    {
        function = reinterpret_cast<Pointer>(library.find(name));
    }
    void bindAll();
};

void Nvml::Api::bindAll()
{
    bind(init, "nvmlInit_v2");
    bind(shutdown, "nvmlShutdown");
    bind(errorString, "nvmlErrorString");
    bind(driverVersion, "nvmlSystemGetDriverVersion");
    bind(handleByPci, "nvmlDeviceGetHandleByPciBusId_v2");
    bind(utilization, "nvmlDeviceGetUtilizationRates");
    bind(power, "nvmlDeviceGetPowerUsage");
    bind(temperature, "nvmlDeviceGetTemperature");
    bind(clock, "nvmlDeviceGetClockInfo");
    bind(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    bind(pcie, "nvmlDeviceGetPcieThroughput");
    bind(memory, "nvmlDeviceGetMemoryInfo");
    bind(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
}

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string &pciAddress)
{
    const std::array<std::string, 1> names = {"libnvidia-ml.so.1"};
    auto library = DynamicLibrary::open(names);
    if (!library)
        return fail("NVML was not found ({}): no metrics of the GPU.", library.error().text);
    auto api = std::make_unique<Api>(Api{.library = std::move(*library)});
    api->bindAll();
    if (!api->init || !api->shutdown || !api->errorString || !api->handleByPci)
        return fail("This NVML lacks functions that every driver has: no metrics of the GPU.");
    if (const int result = api->init(); result != kSuccess)
        return fail("NVML does not start ({}): no metrics of the GPU.", api->errorString(result));
    Device device = nullptr;
    if (const int result = api->handleByPci(pciAddress.c_str(), &device); result != kSuccess) {
        const std::string reason = api->errorString(result);
        api->shutdown();
        return fail("NVML does not know the GPU at {} ({}): no metrics of it.", pciAddress, reason);
    }
    return std::unique_ptr<Nvml>(new Nvml(std::move(api), device));
}

Nvml::Nvml(std::unique_ptr<Api> api, void *device)
    : m_api(std::move(api))
    , m_device(device)
{
}

Nvml::~Nvml()
{
    m_api->shutdown();
}

std::string Nvml::driverVersion() const
{
    std::array<char, 96> text{};
    if (!m_api->driverVersion || m_api->driverVersion(text.data(), text.size()) != kSuccess)
        return {};
    return text.data();
}

namespace {

/// The bytes that this process holds on the device. The call says how many processes there are if there is no room.
template <typename Function>
std::optional<int64_t> usedByThisProcess(Function processes, Device device)
{
    std::vector<ProcessInfo> infos(64);
    auto count = static_cast<unsigned>(infos.size());
    if (!processes || processes(device, &count, infos.data()) != kSuccess)
        return std::nullopt;
    infos.resize(std::min<size_t>(count, infos.size()));
    for (const ProcessInfo &info : infos) {
        if (info.pid == static_cast<unsigned>(::getpid()) && info.usedBytes != kNotAvailable)
            return static_cast<int64_t>(info.usedBytes);
    }
    return std::nullopt;
}

} // namespace

GpuReading Nvml::read()
{
    GpuReading reading;
    unsigned value = 0;
    Utilization utilization;
    if (m_api->utilization && m_api->utilization(m_device, &utilization) == kSuccess)
        reading.utilization = utilization.gpuPercent / 100.0;
    if (m_api->power && m_api->power(m_device, &value) == kSuccess)
        reading.powerWatts = value / 1000.0;
    if (m_api->temperature && m_api->temperature(m_device, kTemperatureGpu, &value) == kSuccess)
        reading.temperatureCelsius = value;
    if (m_api->clock && m_api->clock(m_device, kClockSm, &value) == kSuccess)
        reading.smClockHertz = value * 1e6;
    unsigned long long reasons = 0;
    if (m_api->throttle && m_api->throttle(m_device, &reasons) == kSuccess)
        reading.throttleReasons = static_cast<double>(reasons);
    // KiB/s, over a window of 20 ms.
    if (m_api->pcie && m_api->pcie(m_device, kPcieTx, &value) == kSuccess)
        reading.pcieTxBytesPerSecond = value * 1024.0;
    if (m_api->pcie && m_api->pcie(m_device, kPcieRx, &value) == kSuccess)
        reading.pcieRxBytesPerSecond = value * 1024.0;
    Memory memory;
    if (m_api->memory && m_api->memory(m_device, &memory) == kSuccess)
        reading.deviceUsedBytes = static_cast<int64_t>(memory.used);
    reading.processUsedBytes = usedByThisProcess(m_api->processes, m_device);
    return reading;
}

} // namespace shardscope::collect
