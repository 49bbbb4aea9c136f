// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/host_facts.h"

#include "core/base/file.h"
#include "profiler/collect/recorder.h"

#include <array>
#include <charconv>
#include <ctime>
#include <string_view>
#include <unistd.h>

namespace shardscope::collect {

namespace {

/// The value of "key : value" in one of /proc's files.
std::optional<std::string> procValue(const char *path, std::string_view key)
{
    const auto text = readTextFile(path);
    if (!text)
        return std::nullopt;
    std::string_view rest = *text;
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const size_t colon = line.find(':');
        if (colon == std::string_view::npos || !line.starts_with(key))
            continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string_view::npos ? std::string() : std::string(line.substr(begin));
    }
    return std::nullopt;
}

} // namespace

std::string processorName()
{
    return procValue("/proc/cpuinfo", "model name").value_or("CPU");
}

std::optional<int64_t> physicalMemoryBytes()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long pageBytes = ::sysconf(_SC_PAGESIZE);
    if (pages <= 0 || pageBytes <= 0)
        return std::nullopt;
    return int64_t{pages} * pageBytes;
}

std::optional<int64_t> residentBytes()
{
    // Pages: size, resident, shared, …
    const auto text = readTextFile("/proc/self/statm");
    if (!text)
        return std::nullopt;
    const size_t space = text->find(' ');
    int64_t pages = 0;
    if (space == std::string::npos ||
        std::from_chars(text->data() + space + 1, text->data() + text->size(), pages).ec != std::errc())
        return std::nullopt;
    return pages * ::sysconf(_SC_PAGESIZE);
}

int64_t processorTimeNs()
{
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

std::string hostName()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("localhost");
}

DeviceDescription hostDevice()
{
    DeviceDescription device;
    device.kind = DeviceKind::Cpu;
    device.name = processorName();
    device.memoryBytes = physicalMemoryBytes();
    return device;
}

} // namespace shardscope::collect
