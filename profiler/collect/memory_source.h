// SPDX-License-Identifier: Apache-2.0
// Where the recorder reads memory from. profiler/allocator has one for LibTorch's CPU allocator and one for its CUDA
// allocator, held_memory.h one for what others tell; tests have their own.
#pragma once

#include "profiler/collect/memory_ledger.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::collect {

using observe::MemoryPlace;

/// One consistent reading of a place: categories + rounding = allocated, allocated + pending free = active.
struct MemoryReading
{
    int64_t timeNs = 0;
    CategoryBytes categories{};
    int64_t roundingBytes = 0;
    int64_t pendingFreeBytes = 0;
    int64_t allocatedBytes = 0; ///< the allocator's own statistic where it has one
    int64_t activeBytes = 0;
    int64_t reservedBytes = 0;
    /// categories + rounding − allocated by the allocator's own statistics: 0, or the sum is broken.
    int64_t differenceBytes = 0;
};

/// A step's peak: the reading at that moment, and whose bytes they were.
struct MemoryPeak
{
    MemoryReading reading;
    /// Row unit + 1; row 0 belongs to no unit.
    std::vector<CategoryBytes> units;
};

/// An allocation that ended (or, at close, did not). Recorded at level full.
struct AllocationRecord
{
    uint64_t address = 0;
    int64_t bytes = 0;
    observe::MemoryTag tag;
    int64_t allocatedNs = 0;
    int64_t freedNs = 0; ///< 0: still live
};

class MemorySource
{
public:
    virtual ~MemorySource() = default;

    virtual MemoryPlace place() const = 0;
    /// False: there is nothing to read, and nothing is missing.
    virtual bool isInUse() const { return true; }
    /// The device that the bytes are on; nothing for host memory.
    virtual std::optional<int32_t> deviceOrdinal() const { return std::nullopt; }

    /// Nothing if no consistent reading could be had (another thread allocates without pause).
    virtual std::optional<MemoryReading> read() = 0;
    virtual void beginStep() = 0;
    /// The peak since beginStep().
    virtual std::optional<MemoryPeak> peak() = 0;

    /// Hands every allocation that ends to `sink`, from the thread that frees it, under the allocator's lock: it must
    /// be short and must not allocate from the allocator. An empty function ends it.
    virtual void recordAllocations(std::function<void(const AllocationRecord &)> sink) = 0;
    virtual std::vector<AllocationRecord> liveAllocations() = 0;
};

} // namespace shardscope::collect
