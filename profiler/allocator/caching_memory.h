// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/allocator/allocator_events.h"
#include "profiler/collect/memory_source.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace shardscope::allocator {

/// Categories of a caching allocator's blocks, from its events. Nothing here knows CUDA: tests play the allocator.
///
/// Bytes asked for are the categories'. What a block really takes is only known from the allocator's statistics, which
/// it updates after it has told of an allocation; so an allocation is settled at the next event, or at the next
/// reading. Its statistics are read under its own lock, in which the events come: exact sums at every event, and an
/// exact peak.
class CachingMemory final : public collect::MemorySource
{
public:
    /// `statistics` reads the allocator's own figures; it takes the allocator's lock (which is recursive) by itself.
    using Statistics = std::function<AllocatorStatistics()>;
    CachingMemory(collect::MemoryPlace place, int32_t ordinal, std::shared_ptr<collect::CurrentMemoryTag> tag,
                  Statistics statistics);

    collect::MemoryPlace place() const override { return m_place; }
    std::optional<int32_t> deviceOrdinal() const override { return m_ordinal; }
    std::optional<collect::MemoryReading> read() override;
    void beginStep() override;
    std::optional<collect::MemoryPeak> peak() override;
    void recordAllocations(std::function<void(const collect::AllocationRecord &)> sink) override;
    std::vector<collect::AllocationRecord> liveAllocations() override;

    /// Called by the allocator, under its lock.
    void event(const AllocatorEvent &event);
    /// What was live before the first event: it belongs to "other".
    void adopt(uint64_t address, int64_t requestedBytes, int64_t blockBytes, bool pendingFree);

private:
    struct Block
    {
        collect::AllocationRecord record;
        int64_t blockBytes = 0; ///< 0: not settled
        bool freeing = false;   ///< freed, but a stream still uses it
    };
    void allocated(const AllocatorEvent &event, const AllocatorStatistics &before);
    void freeRequested(const AllocatorEvent &event);
    void freeCompleted(const AllocatorEvent &event);
    /// The last allocation has made the total `allocatedBytes`.
    void settle(int64_t allocatedBytes, const AllocatorStatistics &statistics);
    collect::MemoryReading reading(const AllocatorStatistics &statistics, int64_t timeNs) const;
    /// Calls `use` with statistics that fit the state, under this object's lock. False if other threads allocate
    /// without pause.
    bool consistently(const std::function<void(const AllocatorStatistics &)> &use);

    const collect::MemoryPlace m_place;
    const int32_t m_ordinal;
    const std::shared_ptr<collect::CurrentMemoryTag> m_tag;
    const Statistics m_statistics;

    // The allocator's lock is taken before this one, never after.
    std::mutex m_mutex;
    uint64_t m_sequence = 0; ///< of events
    collect::MemoryLedger m_ledger;
    std::unordered_map<uint64_t, Block> m_blocks;
    uint64_t m_unsettled = 0;           ///< address of the last allocation; 0: all are settled
    int64_t m_beforeUnsettled = 0;      ///< the allocator's total before it
    int64_t m_pendingRequested = 0;     ///< asked for, in blocks that are being freed
    int64_t m_pendingBytes = 0;         ///< the blocks themselves
    std::optional<int64_t> m_peakBytes; ///< of this step
    collect::MemoryReading m_peakReading;
    std::function<void(const collect::AllocationRecord &)> m_sink;
};

} // namespace shardscope::allocator
