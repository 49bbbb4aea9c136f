// SPDX-License-Identifier: Apache-2.0
// The caching allocator played by a small one: it rounds, keeps blocks whose stream is not done, and tells of events in
// the order in which LibTorch's tells (before or after its own figures change).
#include "profiler/allocator/caching_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <thread>

namespace shardscope::allocator {
namespace {

using collect::CurrentMemoryTag;

struct Block
{
    int64_t requested = 0;
    int64_t rounded = 0;
    observe::MemoryTag tag;
    bool freeing = false;
};

class FakeCachingAllocator
{
public:
    /// `leavesFirst`: the figures change before a free is told, as in LibTorch 2.11; else after.
    explicit FakeCachingAllocator(bool leavesFirst)
        : m_leavesFirst(leavesFirst)
        , memory(collect::MemoryPlace::Device, 0, tag, [this] {
            const std::lock_guard lock(mutex);
            return m_statistics;
        })
    {
    }

    uint64_t allocate(int64_t requested, observe::MemoryTag as, int64_t slack)
    {
        const std::lock_guard lock(mutex);
        const Block block{requested, (requested + 511) / 512 * 512 + slack, as, false};
        const uint64_t address = m_next += 0x1000;
        tag->set(as);
        memory.event({AllocatorEvent::Kind::Allocated, address, requested});
        live[address] = block;
        m_statistics.allocatedBytes += block.rounded;
        m_statistics.activeBytes += block.rounded;
        m_statistics.requestedBytes += block.requested;
        look();
        return address;
    }
    void free(uint64_t address, bool streamIsDone)
    {
        const std::lock_guard lock(mutex);
        Block &block = live.at(address);
        if (m_leavesFirst)
            m_statistics.allocatedBytes -= block.rounded;
        memory.event({AllocatorEvent::Kind::FreeRequested, address, block.requested});
        if (!m_leavesFirst)
            m_statistics.allocatedBytes -= block.rounded;
        block.freeing = true;
        if (streamIsDone)
            complete(address);
    }
    void complete(uint64_t address)
    {
        const std::lock_guard lock(mutex);
        const Block block = live.at(address);
        memory.event({AllocatorEvent::Kind::FreeCompleted, address, block.requested});
        m_statistics.activeBytes -= block.rounded;
        m_statistics.requestedBytes -= block.requested;
        live.erase(address);
    }
    int64_t allocatedBytes() const { return m_statistics.allocatedBytes; }
    void beginStep()
    {
        memory.beginStep();
        peakBytes = m_statistics.allocatedBytes;
        atPeak = live;
    }

    std::recursive_mutex mutex;
    std::shared_ptr<CurrentMemoryTag> tag = std::make_shared<CurrentMemoryTag>();
    std::map<uint64_t, Block> live;
    std::map<uint64_t, Block> atPeak; ///< by brute force
    int64_t peakBytes = 0;

private:
    void look()
    {
        if (m_statistics.allocatedBytes > peakBytes) {
            peakBytes = m_statistics.allocatedBytes;
            atPeak = live;
        }
    }
    const bool m_leavesFirst;
    AllocatorStatistics m_statistics;
    uint64_t m_next = 0;

public:
    CachingMemory memory;
};

void expectEqual(const collect::MemoryReading &reading, const std::map<uint64_t, Block> &live)
{
    collect::CategoryBytes categories{};
    int64_t requested = 0;
    int64_t rounded = 0;
    int64_t pending = 0;
    for (const auto &[address, block] : live) {
        if (block.freeing) {
            pending += block.rounded;
            continue;
        }
        categories[static_cast<size_t>(block.tag.category)] += block.requested;
        requested += block.requested;
        rounded += block.rounded;
    }
    ASSERT_EQ(reading.categories, categories);
    ASSERT_EQ(reading.allocatedBytes, rounded);
    ASSERT_EQ(reading.roundingBytes, rounded - requested);
    ASSERT_EQ(reading.pendingFreeBytes, pending);
    ASSERT_EQ(reading.activeBytes, rounded + pending);
    ASSERT_EQ(reading.differenceBytes, 0);
}

class CachingMemoryTest : public testing::TestWithParam<bool>
{
};

TEST_P(CachingMemoryTest, IsExactAtEverySampleAndAtEveryPeak)
{
    FakeCachingAllocator allocator(GetParam());
    std::mt19937 random(11);
    std::vector<uint64_t> held;
    std::vector<uint64_t> pending;
    for (int step = 0; step < 100; ++step) {
        allocator.beginStep();
        for (int i = 0; i < 60; ++i) {
            const auto choice = random() % 100;
            if (held.empty() || choice < 50) {
                const observe::MemoryTag tag{static_cast<MemoryCategory>(random() % kMemoryCategories),
                                             static_cast<int32_t>(random() % 5) - 1};
                held.push_back(allocator.allocate(1 + static_cast<int64_t>(random() % 4000), tag,
                                                  random() % 4 ? 0 : 512 * static_cast<int64_t>(random() % 5)));
                // At once freed again: the block's size is only known from what comes after.
                if (random() % 4 == 0) {
                    allocator.free(held.back(), true);
                    held.pop_back();
                }
            } else if (!pending.empty() && choice < 60) {
                allocator.complete(pending.back());
                pending.pop_back();
            } else {
                std::swap(held[random() % held.size()], held.back());
                const bool done = random() % 3 != 0;
                allocator.free(held.back(), done);
                if (!done)
                    pending.push_back(held.back());
                held.pop_back();
            }
            if (random() % 3 == 0)
                expectEqual(*allocator.memory.read(), allocator.live);
            if (testing::Test::HasFatalFailure())
                return;
        }
        const auto peak = allocator.memory.peak();
        ASSERT_TRUE(peak);
        ASSERT_EQ(peak->reading.allocatedBytes, allocator.peakBytes) << "step " << step;
        expectEqual(peak->reading, allocator.atPeak);
        std::map<std::pair<int, size_t>, int64_t> units;
        for (const auto &[address, block] : allocator.atPeak) {
            if (!block.freeing)
                units[{block.tag.unit, static_cast<size_t>(block.tag.category)}] += block.requested;
        }
        for (size_t row = 0; row < peak->units.size(); ++row) {
            for (size_t category = 0; category < kMemoryCategories; ++category)
                ASSERT_EQ(peak->units[row][category], (units[{static_cast<int>(row) - 1, category}]));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Orders, CachingMemoryTest, testing::Bool());

TEST(CachingMemory, IsConsistentWhileAnotherThreadAllocates)
{
    FakeCachingAllocator allocator(true);
    std::atomic<bool> stop{false};
    std::thread other([&] {
        std::mt19937 random(5);
        while (!stop) {
            const uint64_t address = allocator.allocate(1 + static_cast<int64_t>(random() % 9000), {}, 0);
            std::this_thread::yield();
            allocator.free(address, true);
        }
    });
    int read = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto reading = allocator.memory.read();
        if (!reading)
            continue;
        ++read;
        const int64_t sum = std::accumulate(reading->categories.begin(), reading->categories.end(), int64_t{0});
        ASSERT_EQ(sum + reading->roundingBytes, reading->allocatedBytes);
        ASSERT_EQ(reading->differenceBytes, 0);
    }
    stop = true;
    other.join();
    EXPECT_GT(read, 0);
}

TEST(CachingMemory, SaysByHowMuchASumIsBroken)
{
    FakeCachingAllocator allocator(true);
    allocator.allocate(700, {MemoryCategory::Input, 1}, 0);
    // The allocator knows of a block that nobody told of.
    AllocatorStatistics more{.allocatedBytes = 2048, .activeBytes = 2048, .requestedBytes = 1700};
    CachingMemory memory(collect::MemoryPlace::Device, 0, allocator.tag, [&] { return more; });
    memory.adopt(0x1000, 700, 1024, false);
    EXPECT_EQ(memory.read()->differenceBytes, -1000);
    memory.adopt(0x2000, 1000, 1024, false);
    EXPECT_EQ(memory.read()->differenceBytes, 0);
    EXPECT_EQ(memory.read()->categories[static_cast<size_t>(MemoryCategory::Other)], 1700);
    EXPECT_EQ(memory.liveAllocations().size(), 2u);
}

} // namespace
} // namespace shardscope::allocator
