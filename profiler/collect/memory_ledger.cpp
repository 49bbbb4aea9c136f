// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/memory_ledger.h"

namespace shardscope::collect {

MemoryLedger::MemoryLedger()
    : m_units(1)
{
}

CategoryBytes &MemoryLedger::row(observe::UnitIndex unit)
{
    const size_t index = unit < 0 ? 0 : static_cast<size_t>(unit) + 1;
    if (index >= m_units.size())
        m_units.resize(index + 1);
    return m_units[index];
}

void MemoryLedger::allocated(observe::MemoryTag tag, int64_t bytes)
{
    const auto category = static_cast<size_t>(tag.category);
    row(tag.unit)[category] += bytes;
    m_categories[category] += bytes;
    m_requested += bytes;
}

void MemoryLedger::freed(observe::MemoryTag tag, int64_t bytes)
{
    if (m_atPeak)
        keepPeak();
    const auto category = static_cast<size_t>(tag.category);
    row(tag.unit)[category] -= bytes;
    m_categories[category] -= bytes;
    m_requested -= bytes;
}

void MemoryLedger::settle(int64_t allocatedBytes, int64_t timeNs)
{
    if (allocatedBytes <= m_peak.allocatedBytes)
        return;
    m_peak.allocatedBytes = allocatedBytes;
    m_peak.timeNs = timeNs;
    m_atPeak = true;
}

void MemoryLedger::beginStep(int64_t allocatedBytes, int64_t timeNs)
{
    m_peak.allocatedBytes = allocatedBytes;
    m_peak.timeNs = timeNs;
    m_atPeak = true;
}

void MemoryLedger::keepPeak()
{
    m_peak.categories = m_categories;
    m_peak.units = m_units;
    m_atPeak = false;
}

MemoryLedger::Peak MemoryLedger::peak() const
{
    Peak peak = m_peak;
    if (m_atPeak) {
        peak.categories = m_categories;
        peak.units = m_units;
    }
    return peak;
}

} // namespace shardscope::collect
