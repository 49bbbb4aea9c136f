// SPDX-License-Identifier: Apache-2.0
#include "tests/model/counting_allocator.h"

#include <algorithm>
#include <c10/core/CPUAllocator.h>

namespace shardscope::test {

/// Whose bytes the thread allocates.
struct ThreadTag
{
    observe::MemoryTag tag;
    int rank = 0;
};
static thread_local ThreadTag threadTag;

CountingAllocator &CountingAllocator::instance()
{
    // Never destroyed: blocks may outlive everything else of the process.
    static CountingAllocator &counting = *new CountingAllocator;
    return counting;
}

CountingAllocator::CountingAllocator()
    : m_inner(c10::GetDefaultCPUAllocator())
{
    c10::SetCPUAllocator(this, 100);
}

void CountingAllocator::Count::add(int64_t bytes)
{
    live += bytes;
    highest = std::max(highest, live);
}

void CountingAllocator::count(const Block &block, int64_t bytes)
{
    m_categories[{block.tag.category, block.rank}].add(bytes);
    m_units[{block.tag.category, block.tag.unit}].add(bytes);
    const MemoryCategory category = block.tag.category;
    if (category == MemoryCategory::Activations || category == MemoryCategory::Temporary)
        m_work[block.tag.unit].add(bytes);
    if (category != MemoryCategory::Communication && category != MemoryCategory::Input &&
        category != MemoryCategory::Other)
        m_planned[block.rank].add(bytes);
}

c10::DataPtr CountingAllocator::allocate(size_t bytes)
{
    void *address = m_inner->raw_allocate(bytes);
    if (address)
        allocated(address, static_cast<int64_t>(bytes));
    return {address, address, &freeBlock, at::Device(at::kCPU)};
}

void CountingAllocator::allocated(void *address, int64_t bytes)
{
    const std::lock_guard lock(m_mutex);
    const Block block{bytes, threadTag.tag, threadTag.rank};
    m_blocks[address] = block;
    count(block, bytes);
}

void CountingAllocator::freed(void *address)
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_blocks.find(address);
    if (found == m_blocks.end())
        return;
    count(found->second, -found->second.bytes);
    m_blocks.erase(found);
}

void CountingAllocator::freeBlock(void *address)
{
    CountingAllocator &self = instance();
    self.freed(address);
    self.m_inner->raw_deallocate(address);
}

c10::DeleterFnPtr CountingAllocator::raw_deleter() const
{
    return &freeBlock;
}

void CountingAllocator::copy_data(void *to, const void *from, size_t bytes) const
{
    default_copy_data(to, from, bytes);
}

void CountingAllocator::thisThreadIsRank(int rank)
{
    threadTag.rank = rank;
}

void CountingAllocator::forgetHighest()
{
    const std::lock_guard lock(m_mutex);
    for (auto &[category, count] : m_categories)
        count.highest = count.live;
    for (auto &[tag, count] : m_units)
        count.highest = count.live;
    for (auto &[unit, count] : m_work)
        count.highest = count.live;
    for (auto &[rank, count] : m_planned)
        count.highest = count.live;
}

int64_t CountingAllocator::liveBytes(MemoryCategory category, int rank) const
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_categories.find({category, rank});
    return found == m_categories.end() ? 0 : found->second.live;
}

int64_t CountingAllocator::highestBytes(MemoryCategory category, int rank) const
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_categories.find({category, rank});
    return found == m_categories.end() ? 0 : found->second.highest;
}

std::map<observe::UnitIndex, int64_t> CountingAllocator::liveBytesOfUnits(MemoryCategory category) const
{
    const std::lock_guard lock(m_mutex);
    std::map<observe::UnitIndex, int64_t> units;
    for (const auto &[tag, count] : m_units) {
        if (tag.first == category && count.live != 0)
            units[tag.second] = count.live;
    }
    return units;
}

int64_t CountingAllocator::liveBytes() const
{
    const std::lock_guard lock(m_mutex);
    int64_t sum = 0;
    for (const auto &[category, count] : m_categories)
        sum += count.live;
    return sum;
}

int64_t CountingAllocator::highestPlannedBytes(int rank) const
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_planned.find(rank);
    return found == m_planned.end() ? 0 : found->second.highest;
}

int64_t CountingAllocator::highestWorkBytes(observe::UnitIndex unit) const
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_work.find(unit);
    return found == m_work.end() ? 0 : found->second.highest;
}

observe::MemoryTag CountingAllocator::setTag(observe::MemoryTag tag)
{
    return std::exchange(threadTag.tag, tag);
}

} // namespace shardscope::test
