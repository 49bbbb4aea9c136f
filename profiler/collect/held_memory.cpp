// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/held_memory.h"

#include "core/base/clock.h"

namespace shardscope::collect {

static MemoryReading readingOf(const CategoryBytes &categories, int64_t usedBytes, int64_t reservedBytes,
                               int64_t timeNs)
{
    return {.timeNs = timeNs,
            .categories = categories,
            .allocatedBytes = usedBytes,
            .activeBytes = usedBytes,
            .reservedBytes = reservedBytes};
}

void HeldMemorySource::change(const observe::HeldMemory &change)
{
    const std::lock_guard lock(m_mutex);
    m_reservedBytes += change.reservedBytes;
    if (change.usedBytes > 0)
        m_ledger.allocated(change.tag, change.usedBytes);
    else if (change.usedBytes < 0)
        m_ledger.freed(change.tag, -change.usedBytes);
    m_ledger.settle(m_ledger.requestedBytes(), realtimeNs());
    m_isInUse.store(true, std::memory_order_relaxed);
}

std::optional<MemoryReading> HeldMemorySource::read()
{
    const std::lock_guard lock(m_mutex);
    return readingOf(m_ledger.categories(), m_ledger.requestedBytes(), m_reservedBytes, realtimeNs());
}

void HeldMemorySource::beginStep()
{
    const std::lock_guard lock(m_mutex);
    m_ledger.beginStep(m_ledger.requestedBytes(), realtimeNs());
}

std::optional<MemoryPeak> HeldMemorySource::peak()
{
    const std::lock_guard lock(m_mutex);
    MemoryLedger::Peak peak = m_ledger.peak();
    return MemoryPeak{readingOf(peak.categories, peak.allocatedBytes, m_reservedBytes, peak.timeNs),
                      std::move(peak.units)};
}

} // namespace shardscope::collect
