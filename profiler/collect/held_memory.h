// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/memory_source.h"

#include <atomic>
#include <mutex>

namespace shardscope::collect {

/// Memory that its holders tell of, because no allocator of LibTorch gives it out: pinned buffers, files on a drive.
/// What a pool has ready and nobody uses is reserved and not allocated.
class HeldMemorySource final : public MemorySource
{
public:
    explicit HeldMemorySource(MemoryPlace place)
        : m_place(place)
    {
    }
    void change(const observe::HeldMemory &change);

    MemoryPlace place() const override { return m_place; }
    /// From the first change on.
    bool isInUse() const override { return m_isInUse.load(std::memory_order_relaxed); }
    std::optional<MemoryReading> read() override;
    void beginStep() override;
    std::optional<MemoryPeak> peak() override;
    /// Single allocations are not known.
    void recordAllocations(std::function<void(const AllocationRecord &)>) override {}
    std::vector<AllocationRecord> liveAllocations() override { return {}; }

private:
    const MemoryPlace m_place;
    std::atomic<bool> m_isInUse{false};
    std::mutex m_mutex;
    MemoryLedger m_ledger;
    int64_t m_reservedBytes = 0;
};

} // namespace shardscope::collect
