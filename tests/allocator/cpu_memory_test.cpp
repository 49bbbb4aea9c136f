// SPDX-License-Identifier: Apache-2.0
#include "profiler/allocator/cpu_allocator.h"
#include "profiler/allocator/cpu_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

namespace shardscope::allocator {
namespace {

using collect::CurrentMemoryTag;
using collect::MemoryReading;

/// The allocator below: it keeps its own books of what is live, apart from those above. It counts what is asked of it
/// less the recorder's own header.
class Books final : public c10::Allocator
{
public:
    c10::DataPtr allocate(size_t bytes) override
    {
        // As LibTorch's: nothing for nothing.
        if (bytes == 0)
            return {nullptr, c10::Device(c10::kCPU)};
        auto *entry = new Entry{this, std::aligned_alloc(64, (bytes + 63) / 64 * 64), bytes};
        const std::lock_guard lock(m_mutex);
        m_live[entry->data] = bytes - CpuAllocator::kHeaderBytes;
        return {entry->data, entry, &release, c10::Device(c10::kCPU)};
    }
    void copy_data(void *target, const void *source, size_t bytes) const override
    {
        default_copy_data(target, source, bytes);
    }
    int64_t liveBytes()
    {
        const std::lock_guard lock(m_mutex);
        return std::accumulate(m_live.begin(), m_live.end(), int64_t{0},
                               [](int64_t sum, const auto &entry) { return sum + static_cast<int64_t>(entry.second); });
    }
    /// By the address of the data.
    std::map<void *, size_t> live()
    {
        const std::lock_guard lock(m_mutex);
        std::map<void *, size_t> blocks;
        for (const auto &[block, bytes] : m_live)
            blocks[static_cast<char *>(block) + CpuAllocator::kHeaderBytes] = bytes;
        return blocks;
    }

private:
    struct Entry
    {
        Books *books;
        void *data;
        size_t bytes;
    };
    static void release(void *context)
    {
        const std::unique_ptr<Entry> entry(static_cast<Entry *>(context));
        {
            const std::lock_guard lock(entry->books->m_mutex);
            entry->books->m_live.erase(entry->data);
        }
        std::free(entry->data);
    }
    std::mutex m_mutex;
    std::map<void *, size_t> m_live;
};

int64_t sumOf(const collect::CategoryBytes &categories)
{
    return std::accumulate(categories.begin(), categories.end(), int64_t{0});
}

TEST(CpuMemory, CategoriesSumToWhatTheAllocatorBelowHoldsAtEverySample)
{
    Books books;
    auto tag = std::make_shared<CurrentMemoryTag>();
    CpuAllocator allocator(books, tag);
    const auto memory = allocator.memory();
    std::mt19937 random(3);
    std::vector<c10::DataPtr> live;
    for (int i = 0; i < 5000; ++i) {
        tag->set({static_cast<MemoryCategory>(random() % kMemoryCategories), static_cast<int32_t>(random() % 4) - 1});
        if (live.empty() || random() % 2)
            live.push_back(allocator.allocate(1 + random() % 5000));
        else
            live.erase(live.begin() + static_cast<ptrdiff_t>(random() % live.size()));
        const MemoryReading reading = *memory->read();
        ASSERT_EQ(sumOf(reading.categories) + reading.roundingBytes, books.liveBytes());
        ASSERT_EQ(reading.allocatedBytes, books.liveBytes());
        ASSERT_EQ(reading.differenceBytes, 0);
    }
    // Block by block, too.
    std::map<void *, size_t> seen;
    for (const collect::AllocationRecord &record : memory->liveAllocations())
        seen[reinterpret_cast<void *>(record.address)] = static_cast<size_t>(record.bytes);
    EXPECT_EQ(seen, books.live());
}

TEST(CpuMemory, StaysRightWhenManyThreadsAllocateAndFreeEachOthers)
{
    Books books;
    auto tag = std::make_shared<CurrentMemoryTag>();
    CpuAllocator allocator(books, tag);
    const auto memory = allocator.memory();
    std::mutex mutex;
    std::vector<c10::DataPtr> shared;
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < 5000; ++i) {
                tag->set({static_cast<MemoryCategory>(random() % kMemoryCategories), static_cast<int32_t>(t)});
                c10::DataPtr block = allocator.allocate(1 + random() % 3000);
                c10::DataPtr other; // of any thread, freed here outside of the lock
                const std::lock_guard lock(mutex);
                if (shared.size() > 50) {
                    other = std::move(shared[random() % shared.size()]);
                }
                shared.push_back(std::move(block));
                std::erase_if(shared, [](const c10::DataPtr &pointer) { return !pointer; });
            }
        });
    }
    std::thread sampler([&] {
        while (!stop) {
            const MemoryReading reading = *memory->read();
            EXPECT_EQ(sumOf(reading.categories), reading.allocatedBytes);
            EXPECT_EQ(reading.differenceBytes, 0);
        }
    });
    for (std::thread &thread : threads)
        thread.join();
    stop = true;
    sampler.join();
    EXPECT_EQ(memory->read()->allocatedBytes, books.liveBytes());
    EXPECT_GT(books.liveBytes(), 0);
    shared.clear();
    EXPECT_EQ(books.liveBytes(), 0);
    EXPECT_EQ(memory->read()->allocatedBytes, 0);
    EXPECT_EQ(memory->read()->categories, collect::CategoryBytes{});
}

TEST(CpuMemory, PeakIsThatOfTheStepWithItsUnits)
{
    Books books;
    auto tag = std::make_shared<CurrentMemoryTag>();
    CpuAllocator allocator(books, tag);
    const auto memory = allocator.memory();
    tag->set({MemoryCategory::Parameters, 0});
    const c10::DataPtr parameters = allocator.allocate(1000);
    for (int step = 1; step <= 3; ++step) {
        memory->beginStep();
        tag->set({MemoryCategory::Activations, 1});
        c10::DataPtr activations = allocator.allocate(static_cast<size_t>(100 * step));
        tag->set({MemoryCategory::Temporary, observe::kNoUnit});
        allocator.allocate(50);
        activations.clear();
        allocator.allocate(60);
        const auto peak = memory->peak();
        ASSERT_TRUE(peak);
        EXPECT_EQ(peak->reading.allocatedBytes, 1050 + 100 * step);
        EXPECT_EQ(sumOf(peak->reading.categories), 1050 + 100 * step);
        EXPECT_EQ(peak->units.at(0)[static_cast<size_t>(MemoryCategory::Temporary)], 50);
        EXPECT_EQ(peak->units.at(1)[static_cast<size_t>(MemoryCategory::Parameters)], 1000);
        EXPECT_EQ(peak->units.at(2)[static_cast<size_t>(MemoryCategory::Activations)], 100 * step);
    }
    memory->beginStep();
    EXPECT_EQ(memory->peak()->reading.allocatedBytes, 1000);
}

TEST(CpuMemory, TellsOfEveryFreeAndOutlivesItsAllocator)
{
    Books books;
    std::shared_ptr<collect::MemorySource> memory;
    std::vector<collect::AllocationRecord> ended;
    c10::DataPtr survivor;
    {
        auto tag = std::make_shared<CurrentMemoryTag>();
        CpuAllocator allocator(books, tag);
        memory = allocator.memory();
        memory->recordAllocations([&](const collect::AllocationRecord &record) { ended.push_back(record); });
        tag->set({MemoryCategory::Input, 5});
        allocator.allocate(10);
        survivor = allocator.allocate(20);
        EXPECT_EQ(allocator.allocate(0).get(), nullptr);
    }
    survivor.clear();
    ASSERT_EQ(ended.size(), 2u);
    EXPECT_EQ(ended.front().bytes, 10);
    EXPECT_EQ(ended.front().tag, (observe::MemoryTag{MemoryCategory::Input, 5}));
    EXPECT_LE(ended.front().allocatedNs, ended.front().freedNs);
    EXPECT_EQ(ended.back().bytes, 20);
    EXPECT_EQ(books.liveBytes(), 0);
}

TEST(CpuMemory, OffersTheRawInterfaceAndAlignedBytes)
{
    Books books;
    CpuAllocator allocator(books, std::make_shared<CurrentMemoryTag>());
    void *const data = allocator.raw_allocate(100);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::memset(data, 0xff, 100);
    EXPECT_EQ(allocator.memory()->read()->allocatedBytes, 100);
    allocator.raw_deallocate(data);
    EXPECT_EQ(allocator.memory()->read()->allocatedBytes, 0);
    EXPECT_EQ(books.liveBytes(), 0);
    allocator.raw_deallocate(allocator.raw_allocate(0));
}

TEST(CpuMemory, SeesTensors)
{
    auto tag = std::make_shared<CurrentMemoryTag>();
    const auto memory = trackCpuMemory(tag);
    const int64_t before = memory->read()->allocatedBytes;
    tag->set({MemoryCategory::Optimizer, 2});
    at::Tensor tensor = at::empty({1000});
    EXPECT_EQ(memory->read()->allocatedBytes - before, 4000);
    EXPECT_EQ(memory->read()->categories[static_cast<size_t>(MemoryCategory::Optimizer)], 4000);
    // Freed and filled again, as the engine does with gathered buffers.
    auto *storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(at::DataPtr(nullptr, storage->device()));
    EXPECT_EQ(memory->read()->allocatedBytes, before);
    storage->set_data_ptr_noswap(storage->allocator()->allocate(4000));
    EXPECT_EQ(memory->read()->allocatedBytes - before, 4000);
    std::thread([&] { tensor.reset(); }).join();
    EXPECT_EQ(memory->read()->allocatedBytes, before);
}

} // namespace
} // namespace shardscope::allocator
