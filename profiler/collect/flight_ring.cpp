// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/flight_ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace shardscope::collect {

using observe::FlightEntry;
using observe::FlightHeader;
using observe::kFlightEntries;

namespace {

constexpr size_t kFileBytes = sizeof(FlightHeader) + kFlightEntries * sizeof(FlightEntry);

template <size_t Size>
void copyText(char (&target)[Size], std::string_view text)
{
    const size_t length = std::min(text.size(), Size - 1);
    std::memcpy(target, text.data(), length);
    std::memset(target + length, 0, Size - length);
}

} // namespace

Result<std::unique_ptr<FlightRing>> FlightRing::create(const std::filesystem::path &path, int32_t rank,
                                                       int32_t worldSize, bool endsKnown)
{
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail("Can't make the flight recording {}: {}.", path.string(), std::strerror(errno));
    // Really allocated: a store into a hole of a full disk would end the process with SIGBUS.
    const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(kFileBytes));
    void *mapping = error ? MAP_FAILED : ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int reason = error ? error : errno;
    ::close(fd);
    if (mapping == MAP_FAILED)
        return fail("Can't make the flight recording {}: {}.", path.string(), std::strerror(reason));

    auto *header = new (mapping) FlightHeader{};
    header->version = observe::kFlightVersion;
    header->entries = kFlightEntries;
    header->entryBytes = sizeof(FlightEntry);
    header->rank = rank;
    header->worldSize = worldSize;
    header->pid = ::getpid();
    header->step.store(-1);
    header->endsKnown = endsKnown ? 1 : 0;
    std::unique_ptr<FlightRing> ring(new FlightRing(mapping));
    for (uint32_t i = 0; i < kFlightEntries; ++i)
        (new (ring->m_entries + i) FlightEntry{})->number.store(-1);
    // Last, so that a reader never takes a half-made file for a whole one.
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(header->magic, observe::kFlightMagic, sizeof observe::kFlightMagic);
    return ring;
}

FlightRing::FlightRing(void *mapping)
    : m_header(static_cast<FlightHeader *>(mapping))
    , m_entries(reinterpret_cast<FlightEntry *>(m_header + 1))
{
}

FlightRing::~FlightRing()
{
    ::munmap(m_header, kFileBytes);
}

void FlightRing::step(int64_t number)
{
    m_header->step.store(number, std::memory_order_relaxed);
}

void FlightRing::begin(int64_t number, const observe::CollectiveInfo &info, int64_t step, std::string_view unit,
                       std::string_view communicator)
{
    FlightEntry &entry = m_entries[number % kFlightEntries];
    entry.number.store(-1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    entry.sequence = info.sequence;
    entry.step = step;
    entry.inputBytes = info.inputBytes;
    entry.outputBytes = info.outputBytes;
    entry.enqueuedNs.store(0, std::memory_order_relaxed);
    entry.startedNs.store(0, std::memory_order_relaxed);
    entry.endedNs.store(0, std::memory_order_relaxed);
    entry.operation = static_cast<int32_t>(info.operation);
    entry.phase = static_cast<int32_t>(info.phase);
    copyText(entry.unit, unit);
    copyText(entry.communicator, communicator);
    entry.number.store(number, std::memory_order_release);
}

FlightEntry *FlightRing::find(int64_t number)
{
    if (number < 0)
        return nullptr;
    FlightEntry &entry = m_entries[number % kFlightEntries];
    return entry.number.load(std::memory_order_acquire) == number ? &entry : nullptr;
}

void FlightRing::enqueued(int64_t number, int64_t timeNs)
{
    if (FlightEntry *entry = find(number))
        entry->enqueuedNs.store(timeNs, std::memory_order_relaxed);
}

void FlightRing::started(int64_t number, int64_t timeNs)
{
    if (FlightEntry *entry = find(number))
        entry->startedNs.store(timeNs, std::memory_order_relaxed);
}

void FlightRing::ended(int64_t number, int64_t timeNs)
{
    if (FlightEntry *entry = find(number))
        entry->endedNs.store(timeNs, std::memory_order_relaxed);
}

} // namespace shardscope::collect
