// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/observe/observer.h"

#include <atomic>
#include <c10/core/Allocator.h>
#include <map>
#include <mutex>

namespace shardscope::test {

/// Counts all that LibTorch allocates on the CPU, by category and unit: what is live, and the most that ever was.
class CountingAllocator : public c10::Allocator
{
public:
    /// The one of this process, in front of LibTorch's own from the first call on.
    static CountingAllocator &instance();

    /// The context is the address itself: oneDNN's products use raw_allocate(), which asks for that.
    c10::DataPtr allocate(size_t bytes) override;
    c10::DeleterFnPtr raw_deleter() const override;
    void copy_data(void *to, const void *from, size_t bytes) const override;

    /// Of an allocator that is not in front of another, CUDA's, tell what it gives out and takes back.
    void allocated(void *address, int64_t bytes);
    void freed(void *address);

    /// What this thread allocates is of that rank; of rank 0 where nobody says so.
    static void thisThreadIsRank(int rank);
    void forgetHighest();
    int64_t liveBytes(MemoryCategory category, int rank = 0) const;
    int64_t highestBytes(MemoryCategory category, int rank = 0) const;
    /// Units of all ranks that have any.
    std::map<observe::UnitIndex, int64_t> liveBytesOfUnits(MemoryCategory category) const;
    /// Of all categories.
    int64_t liveBytes() const;
    /// Of all categories that a plan knows of, together: not communication, input and other.
    int64_t highestPlannedBytes(int rank = 0) const;
    /// Of a unit's activations and what is temporary, together.
    int64_t highestWorkBytes(observe::UnitIndex unit) const;

    /// Of this thread.
    static observe::MemoryTag setTag(observe::MemoryTag tag);

private:
    struct Count
    {
        int64_t live = 0;
        int64_t highest = 0;
        void add(int64_t bytes);
    };
    struct Block
    {
        int64_t bytes;
        observe::MemoryTag tag;
        int rank;
    };
    CountingAllocator();
    static void freeBlock(void *address);
    void count(const Block &block, int64_t bytes);

    c10::Allocator *m_inner;
    mutable std::mutex m_mutex;
    std::map<void *, Block> m_blocks;
    std::map<std::pair<MemoryCategory, int>, Count> m_categories; ///< by rank
    std::map<std::pair<MemoryCategory, observe::UnitIndex>, Count> m_units;
    std::map<observe::UnitIndex, Count> m_work; ///< activations and temporary
    std::map<int, Count> m_planned;             ///< by rank
};

/// Sets the tag of the thread that calls, which is a rank's. What a rank's other threads allocate is `other`.
class TagObserver : public observe::Observer
{
public:
    observe::MemoryTag setMemoryTag(observe::MemoryTag tag) override { return CountingAllocator::setTag(tag); }
};

} // namespace shardscope::test
