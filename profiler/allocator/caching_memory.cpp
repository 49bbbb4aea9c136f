// SPDX-License-Identifier: Apache-2.0
#include "profiler/allocator/caching_memory.h"

#include "core/base/clock.h"

#include <utility>

namespace shardscope::allocator {

namespace {

/// Another thread's allocation between two looks costs a try; so many in a row mean that it never stops.
constexpr int kTries = 16;

} // namespace

CachingMemory::CachingMemory(collect::MemoryPlace place, int32_t ordinal,
                             std::shared_ptr<collect::CurrentMemoryTag> tag, Statistics statistics)
    : m_place(place)
    , m_ordinal(ordinal)
    , m_tag(std::move(tag))
    , m_statistics(std::move(statistics))
{
}

void CachingMemory::event(const AllocatorEvent &event)
{
    // Before the lock: the allocator's lock, which this thread holds, comes first in the order.
    const AllocatorStatistics statistics = m_statistics();
    const std::lock_guard lock(m_mutex);
    ++m_sequence;
    // A free may already have left the allocated bytes; active bytes less those that were pending are what was
    // allocated before it, either way.
    if (m_unsettled)
        settle(event.kind == AllocatorEvent::Kind::FreeRequested ? statistics.activeBytes - m_pendingBytes
                                                                 : statistics.allocatedBytes,
               statistics);
    switch (event.kind) {
    case AllocatorEvent::Kind::Allocated:
        allocated(event, statistics);
        break;
    case AllocatorEvent::Kind::FreeRequested:
        freeRequested(event);
        break;
    case AllocatorEvent::Kind::FreeCompleted:
        freeCompleted(event);
        break;
    case AllocatorEvent::Kind::Other:
        break;
    }
}

void CachingMemory::allocated(const AllocatorEvent &event, const AllocatorStatistics &before)
{
    Block block;
    block.record = {.address = event.address, .bytes = event.bytes, .tag = m_tag->get(), .allocatedNs = realtimeNs()};
    m_ledger.allocated(block.record.tag, event.bytes);
    m_blocks.insert_or_assign(event.address, block);
    m_unsettled = event.address;
    m_beforeUnsettled = before.allocatedBytes;
}

void CachingMemory::settle(int64_t allocatedBytes, const AllocatorStatistics &statistics)
{
    Block &block = m_blocks.at(m_unsettled);
    block.blockBytes = allocatedBytes - m_beforeUnsettled;
    m_unsettled = 0;
    if (m_peakBytes && allocatedBytes <= *m_peakBytes)
        return;
    m_peakBytes = allocatedBytes;
    m_ledger.settle(allocatedBytes, block.record.allocatedNs);
    AllocatorStatistics then = statistics;
    then.allocatedBytes = allocatedBytes;
    m_peakReading = reading(then, block.record.allocatedNs);
}

void CachingMemory::freeRequested(const AllocatorEvent &event)
{
    const auto found = m_blocks.find(event.address);
    if (found == m_blocks.end() || found->second.freeing)
        return;
    Block &block = found->second;
    block.freeing = true;
    m_ledger.freed(block.record.tag, block.record.bytes);
    m_pendingRequested += block.record.bytes;
    m_pendingBytes += block.blockBytes;
    if (m_sink) {
        block.record.freedNs = realtimeNs();
        m_sink(block.record);
    }
}

void CachingMemory::freeCompleted(const AllocatorEvent &event)
{
    const auto found = m_blocks.find(event.address);
    if (found == m_blocks.end() || !found->second.freeing)
        return;
    m_pendingRequested -= found->second.record.bytes;
    m_pendingBytes -= found->second.blockBytes;
    m_blocks.erase(found);
}

void CachingMemory::adopt(uint64_t address, int64_t requestedBytes, int64_t blockBytes, bool pendingFree)
{
    const std::lock_guard lock(m_mutex);
    Block block;
    block.record = {.address = address, .bytes = requestedBytes, .allocatedNs = realtimeNs()};
    block.blockBytes = blockBytes;
    block.freeing = pendingFree;
    if (pendingFree) {
        m_pendingRequested += requestedBytes;
        m_pendingBytes += blockBytes;
    } else {
        m_ledger.allocated(block.record.tag, requestedBytes);
    }
    m_blocks.insert_or_assign(address, block);
}

collect::MemoryReading CachingMemory::reading(const AllocatorStatistics &statistics, int64_t timeNs) const
{
    collect::MemoryReading reading{.timeNs = timeNs,
                                   .categories = m_ledger.categories(),
                                   .pendingFreeBytes = statistics.activeBytes - statistics.allocatedBytes,
                                   .allocatedBytes = statistics.allocatedBytes,
                                   .activeBytes = statistics.activeBytes,
                                   .reservedBytes = statistics.reservedBytes};
    // By the allocator's figures alone, so that the sum below can fail.
    const int64_t requestedOfAllocated = statistics.requestedBytes - m_pendingRequested;
    reading.roundingBytes = statistics.allocatedBytes - requestedOfAllocated;
    reading.differenceBytes = m_ledger.requestedBytes() + reading.roundingBytes - statistics.allocatedBytes;
    return reading;
}

bool CachingMemory::consistently(const std::function<void(const AllocatorStatistics &)> &use)
{
    for (int i = 0; i < kTries; ++i) {
        uint64_t sequence = 0;
        {
            const std::lock_guard lock(m_mutex);
            sequence = m_sequence;
        }
        // Waits for an allocation that has been told and not yet counted.
        const AllocatorStatistics statistics = m_statistics();
        const std::lock_guard lock(m_mutex);
        if (m_sequence != sequence)
            continue;
        if (m_unsettled)
            settle(statistics.allocatedBytes, statistics);
        use(statistics);
        return true;
    }
    return false;
}

std::optional<collect::MemoryReading> CachingMemory::read()
{
    std::optional<collect::MemoryReading> result;
    consistently([&](const AllocatorStatistics &statistics) { result = reading(statistics, realtimeNs()); });
    return result;
}

void CachingMemory::beginStep()
{
    const bool done = consistently([&](const AllocatorStatistics &statistics) {
        m_peakReading = reading(statistics, realtimeNs());
        m_peakBytes = statistics.allocatedBytes;
        m_ledger.beginStep(statistics.allocatedBytes, m_peakReading.timeNs);
    });
    if (done)
        return;
    // The next allocation is then the first of the step's peak.
    const std::lock_guard lock(m_mutex);
    m_peakBytes.reset();
    m_ledger.beginStep(0, realtimeNs());
}

std::optional<collect::MemoryPeak> CachingMemory::peak()
{
    std::optional<collect::MemoryPeak> result;
    consistently([&](const AllocatorStatistics &) {
        if (!m_peakBytes)
            return;
        auto peak = m_ledger.peak();
        result = collect::MemoryPeak{m_peakReading, std::move(peak.units)};
    });
    return result;
}

void CachingMemory::recordAllocations(std::function<void(const collect::AllocationRecord &)> sink)
{
    const std::lock_guard lock(m_mutex);
    m_sink = std::move(sink);
}

std::vector<collect::AllocationRecord> CachingMemory::liveAllocations()
{
    const std::lock_guard lock(m_mutex);
    std::vector<collect::AllocationRecord> records;
    for (const auto &[address, block] : m_blocks) {
        if (!block.freeing)
            records.push_back(block.record);
    }
    return records;
}

} // namespace shardscope::allocator
