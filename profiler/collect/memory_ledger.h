// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/observe/observer.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace shardscope::collect {

using CategoryBytes = std::array<int64_t, kMemoryCategories>;

/// The tag of the whole process: set by the train thread, read by every allocation on every thread.
class CurrentMemoryTag
{
public:
    observe::MemoryTag get() const { return unpack(m_packed.load(std::memory_order_relaxed)); }
    /// Returns the tag before.
    observe::MemoryTag set(observe::MemoryTag tag)
    {
        return unpack(m_packed.exchange(pack(tag), std::memory_order_relaxed));
    }

private:
    static constexpr uint64_t pack(observe::MemoryTag tag)
    {
        return (static_cast<uint64_t>(tag.category) << 32) | static_cast<uint32_t>(tag.unit);
    }
    static constexpr observe::MemoryTag unpack(uint64_t packed)
    {
        return {static_cast<MemoryCategory>(packed >> 32), static_cast<int32_t>(static_cast<uint32_t>(packed))};
    }
    std::atomic<uint64_t> m_packed{pack({})};
};

/// Live bytes by unit and category, and what they were at the very moment of the peak of the current step.
/// Not locked: its owner calls it under the lock that orders the allocations.
///
/// A peak is copied only when the first free after it comes, not at each new maximum: a rising edge of n allocations
/// costs one copy.
class MemoryLedger
{
public:
    MemoryLedger();

    /// `allocatedBytes` is what the allocator has given out in all once this allocation is counted.
    void allocated(observe::MemoryTag tag, int64_t bytes);
    void freed(observe::MemoryTag tag, int64_t bytes);
    /// The allocator's own total after the allocations so far; a new maximum becomes the peak.
    void settle(int64_t allocatedBytes, int64_t timeNs);

    /// Begins a step: the peak is what is live now.
    void beginStep(int64_t allocatedBytes, int64_t timeNs);

    const CategoryBytes &categories() const { return m_categories; }
    int64_t requestedBytes() const { return m_requested; }

    struct Peak
    {
        int64_t timeNs = 0;
        int64_t allocatedBytes = 0;
        CategoryBytes categories{};
        /// One row a unit, the first for no unit: row unit + 1.
        std::vector<CategoryBytes> units;
    };
    /// The peak since beginStep().
    Peak peak() const;

private:
    void keepPeak();
    CategoryBytes &row(observe::UnitIndex unit);

    std::vector<CategoryBytes> m_units;
    CategoryBytes m_categories{};
    int64_t m_requested = 0;
    Peak m_peak;
    bool m_atPeak = true;
};

} // namespace shardscope::collect
