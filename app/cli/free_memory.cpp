// SPDX-License-Identifier: Apache-2.0
#include "app/cli/free_memory.h"

#include "core/base/file.h"
#include "profiler/collect/nvml.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace shardscope::cli {

/// Of /proc/meminfo: what can be had without swapping; nothing where it is not told.
static std::optional<int64_t> freeHostBytes()
{
    static constexpr std::string_view kKey = "MemAvailable:";
    const auto text = readTextFile("/proc/meminfo");
    if (!text)
        return std::nullopt;
    const size_t at = text->find(kKey);
    const size_t digits = at == std::string::npos ? at : text->find_first_of("0123456789", at + kKey.size());
    int64_t kib = 0;
    if (digits == std::string::npos ||
        std::from_chars(text->data() + digits, text->data() + text->size(), kib).ec != std::errc())
        return std::nullopt;
    return kib * 1024;
}

/// Ranks by the device that they are on.
static std::map<int64_t, int64_t> ranksOfDevices(const config::ResolvedRun &run)
{
    std::map<int64_t, int64_t> ranks;
    for (const int64_t ordinal : run.deviceOfRank)
        ++ranks[ordinal];
    return ranks;
}

static std::optional<int64_t> freeDeviceBytes(const config::CudaDevice &device)
{
    const auto nvml = collect::Nvml::open(device.pci);
    const auto used = nvml ? (*nvml)->read().deviceUsedBytes : std::nullopt;
    return used ? std::optional(device.memoryBytes - *used) : std::nullopt;
}

plan::Room roomOf(const config::ResolvedRun &run, const config::MachineFacts &machine, int64_t peakBytes)
{
    plan::Room room{.peakBytes = peakBytes, .device = run.device};
    const int64_t ranks = run.configuration.parallel.ranks;
    auto ofHost = freeHostBytes();
    if (ofHost)
        *ofHost /= ranks;
    if (run.device == DeviceKind::Cpu) {
        room.freeBytes = ofHost;
        return room;
    }
    room.freeHostBytes = ofHost;
    for (const auto &[ordinal, count] : ranksOfDevices(run)) {
        const auto free = freeDeviceBytes(machine.cudaDevices[static_cast<size_t>(ordinal)]);
        if (free)
            room.freeBytes = std::min(room.freeBytes.value_or(*free / count), *free / count);
    }
    if (const int64_t cap = run.configuration.memory.capBytes; cap > 0)
        room.freeBytes = std::min(room.freeBytes.value_or(cap), std::max<int64_t>(0, cap - peakBytes));
    return room;
}

int64_t capacityOf(const config::ResolvedRun &run, const config::MachineFacts &machine)
{
    if (run.device == DeviceKind::Cpu)
        return machine.memoryBytes / run.configuration.parallel.ranks;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto &[ordinal, count] : ranksOfDevices(run))
        least = std::min(least, machine.cudaDevices[static_cast<size_t>(ordinal)].memoryBytes / count);
    const int64_t cap = run.configuration.memory.capBytes;
    return cap > 0 ? std::min(least, cap) : least;
}

} // namespace shardscope::cli
