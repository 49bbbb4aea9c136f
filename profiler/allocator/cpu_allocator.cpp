// SPDX-License-Identifier: Apache-2.0
#include "profiler/allocator/cpu_allocator.h"

#include "core/base/clock.h"
#include "profiler/allocator/cpu_memory.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>
#include <new>
#include <utility>

namespace shardscope::allocator {

namespace {

/// One live allocation, in the list of all. It lies in front of the allocation's own bytes.
struct Block
{
    Block *previous = nullptr;
    Block *next = nullptr;
    collect::AllocationRecord record;
    c10::DataPtr memory; ///< of the base allocator
    std::shared_ptr<CpuMemory> owner;
};

static_assert(sizeof(Block) <= CpuAllocator::kHeaderBytes);
static_assert(CpuAllocator::kHeaderBytes % c10::gAlignment == 0);

} // namespace

class CpuMemory final : public collect::MemorySource
{
public:
    collect::MemoryPlace place() const override { return collect::MemoryPlace::Host; }
    std::optional<collect::MemoryReading> read() override;
    void beginStep() override;
    std::optional<collect::MemoryPeak> peak() override;
    void recordAllocations(std::function<void(const collect::AllocationRecord &)> sink) override;
    std::vector<collect::AllocationRecord> liveAllocations() override;

    void add(Block &block);
    void remove(Block &block);

private:
    /// What the CPU allocator has given out is what was asked of it: it rounds nothing and caches nothing.
    static collect::MemoryReading reading(const collect::CategoryBytes &categories, int64_t allocatedBytes,
                                          int64_t timeNs);

    std::mutex m_mutex;
    collect::MemoryLedger m_ledger;
    int64_t m_allocatedBytes = 0; ///< counted by block, apart from the ledger's categories
    Block *m_first = nullptr;
    std::function<void(const collect::AllocationRecord &)> m_sink;
};

void CpuMemory::add(Block &block)
{
    const std::lock_guard lock(m_mutex);
    block.next = m_first;
    if (m_first)
        m_first->previous = &block;
    m_first = &block;
    m_allocatedBytes += block.record.bytes;
    m_ledger.allocated(block.record.tag, block.record.bytes);
    m_ledger.settle(m_allocatedBytes, block.record.allocatedNs);
}

void CpuMemory::remove(Block &block)
{
    const std::lock_guard lock(m_mutex);
    (block.previous ? block.previous->next : m_first) = block.next;
    if (block.next)
        block.next->previous = block.previous;
    m_allocatedBytes -= block.record.bytes;
    m_ledger.freed(block.record.tag, block.record.bytes);
    if (m_sink) {
        block.record.freedNs = realtimeNs();
        m_sink(block.record);
    }
}

collect::MemoryReading CpuMemory::reading(const collect::CategoryBytes &categories, int64_t allocatedBytes,
                                          int64_t timeNs)
{
    collect::MemoryReading reading{.timeNs = timeNs,
                                   .categories = categories,
                                   .allocatedBytes = allocatedBytes,
                                   .activeBytes = allocatedBytes,
                                   .reservedBytes = allocatedBytes,
                                   .differenceBytes = -allocatedBytes};
    for (const int64_t bytes : categories)
        reading.differenceBytes += bytes;
    return reading;
}

std::optional<collect::MemoryReading> CpuMemory::read()
{
    const std::lock_guard lock(m_mutex);
    return reading(m_ledger.categories(), m_allocatedBytes, realtimeNs());
}

void CpuMemory::beginStep()
{
    const std::lock_guard lock(m_mutex);
    m_ledger.beginStep(m_allocatedBytes, realtimeNs());
}

std::optional<collect::MemoryPeak> CpuMemory::peak()
{
    const std::lock_guard lock(m_mutex);
    auto peak = m_ledger.peak();
    return collect::MemoryPeak{reading(peak.categories, peak.allocatedBytes, peak.timeNs), std::move(peak.units)};
}

void CpuMemory::recordAllocations(std::function<void(const collect::AllocationRecord &)> sink)
{
    const std::lock_guard lock(m_mutex);
    m_sink = std::move(sink);
}

std::vector<collect::AllocationRecord> CpuMemory::liveAllocations()
{
    const std::lock_guard lock(m_mutex);
    std::vector<collect::AllocationRecord> records;
    for (const Block *block = m_first; block; block = block->next)
        records.push_back(block->record);
    return records;
}

namespace {

/// The deleter of every block: `data` is what allocate() gave out.
void release(void *data)
{
    if (!data)
        return;
    auto *block = reinterpret_cast<Block *>(static_cast<char *>(data) - CpuAllocator::kHeaderBytes);
    // Counted as free before it is: whoever gets the address next must find the old block gone.
    block->owner->remove(*block);
    const c10::DataPtr memory = std::move(block->memory); // the block itself lies in it
    block->~Block();
}

} // namespace

CpuAllocator::CpuAllocator(c10::Allocator &base, std::shared_ptr<collect::CurrentMemoryTag> tag)
    : m_base(base)
    , m_tag(std::move(tag))
    , m_memory(std::make_shared<CpuMemory>())
{
}

std::shared_ptr<collect::MemorySource> CpuAllocator::memory() const
{
    return m_memory;
}

c10::DataPtr CpuAllocator::allocate(size_t bytes)
{
    // Nothing is allocated, so nothing is to be counted.
    if (bytes == 0)
        return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    c10::DataPtr memory = m_base.allocate(kHeaderBytes + bytes);
    const c10::Device device = memory.device();
    auto *data = static_cast<char *>(memory.get()) + kHeaderBytes;
    auto *block = new (memory.get()) Block;
    block->record = {.address = reinterpret_cast<uint64_t>(data),
                     .bytes = static_cast<int64_t>(bytes),
                     .tag = m_tag->get(),
                     .allocatedNs = realtimeNs()};
    block->memory = std::move(memory);
    block->owner = m_memory;
    m_memory->add(*block);
    return {data, data, &release, device};
}

c10::DeleterFnPtr CpuAllocator::raw_deleter() const
{
    return &release;
}

void CpuAllocator::copy_data(void *target, const void *source, size_t bytes) const
{
    default_copy_data(target, source, bytes);
}

std::shared_ptr<collect::MemorySource> trackCpuMemory(std::shared_ptr<collect::CurrentMemoryTag> tag)
{
    // c10 wants an allocator that lives as long as the process, and keeps it: it is never deleted.
    auto *tracked = new CpuAllocator(*c10::GetCPUAllocator(), std::move(tag));
    constexpr uint8_t kPriority = 100; // above LibTorch's own
    c10::SetCPUAllocator(tracked, kPriority);
    return tracked->memory();
}

} // namespace shardscope::allocator
