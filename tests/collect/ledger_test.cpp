// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/memory_ledger.h"
#include "profiler/collect/memory_sampling.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <thread>

namespace shardscope::collect {
namespace {

struct Allocation
{
    observe::MemoryTag tag;
    int64_t bytes = 0;
};

/// What is live, and the whole of it at the first moment at which it was greatest: by copying everything every time.
struct BruteForce
{
    std::map<int, Allocation> live;
    std::map<int, Allocation> atPeak;
    int64_t peakBytes = 0;

    int64_t total() const
    {
        return std::accumulate(live.begin(), live.end(), int64_t{0},
                               [](int64_t sum, const auto &entry) { return sum + entry.second.bytes; });
    }
    void look()
    {
        if (total() > peakBytes) {
            peakBytes = total();
            atPeak = live;
        }
    }
};

TEST(MemoryLedger, FindsTheCategoriesOfEveryStepsPeak)
{
    std::mt19937 random(1);
    MemoryLedger ledger;
    BruteForce truth;
    int next = 0;
    for (int step = 0; step < 200; ++step) {
        truth.peakBytes = truth.total();
        truth.atPeak = truth.live;
        ledger.beginStep(truth.total(), step);
        for (int i = 0; i < 100; ++i) {
            if (truth.live.empty() || random() % 100 < 52) {
                const Allocation allocation{
                    {static_cast<MemoryCategory>(random() % kMemoryCategories), static_cast<int32_t>(random() % 6) - 1},
                    1 + static_cast<int64_t>(random() % 1000)};
                truth.live[next++] = allocation;
                ledger.allocated(allocation.tag, allocation.bytes);
                ledger.settle(truth.total(), i);
                truth.look();
            } else {
                const auto victim = std::next(truth.live.begin(), static_cast<ptrdiff_t>(random() % truth.live.size()));
                ledger.freed(victim->second.tag, victim->second.bytes);
                truth.live.erase(victim);
            }
        }
        const MemoryLedger::Peak peak = ledger.peak();
        ASSERT_EQ(peak.allocatedBytes, truth.peakBytes) << "step " << step;
        std::map<std::pair<int, int>, int64_t> expected;
        for (const auto &[id, allocation] : truth.atPeak)
            expected[{allocation.tag.unit, static_cast<int>(allocation.tag.category)}] += allocation.bytes;
        for (size_t row = 0; row < peak.units.size(); ++row) {
            for (size_t category = 0; category < kMemoryCategories; ++category) {
                const std::pair key(static_cast<int>(row) - 1, static_cast<int>(category));
                ASSERT_EQ(peak.units[row][category], expected[key]) << "step " << step;
                expected.erase(key);
            }
        }
        for (const auto &[key, bytes] : expected)
            ASSERT_EQ(bytes, 0) << "unit " << key.first;
        ASSERT_EQ(std::accumulate(peak.categories.begin(), peak.categories.end(), int64_t{0}), truth.peakBytes);
    }
}

TEST(MemoryLedger, APeakInTheLastAllocationIsFound)
{
    MemoryLedger ledger;
    ledger.beginStep(0, 0);
    ledger.allocated({MemoryCategory::Gathered, 2}, 100);
    ledger.settle(100, 5);
    const auto peak = ledger.peak();
    EXPECT_EQ(peak.allocatedBytes, 100);
    EXPECT_EQ(peak.timeNs, 5);
    ASSERT_EQ(peak.units.size(), 4u);
    EXPECT_EQ(peak.units[3][static_cast<size_t>(MemoryCategory::Gathered)], 100);
}

TEST(CurrentMemoryTag, KeepsCategoryAndUnitTogether)
{
    CurrentMemoryTag tag;
    EXPECT_EQ(tag.get(), observe::MemoryTag{});
    const observe::MemoryTag first{MemoryCategory::Optimizer, 77};
    EXPECT_EQ(tag.set(first), observe::MemoryTag{});
    EXPECT_EQ(tag.set({MemoryCategory::Input, observe::kNoUnit}), first);
    EXPECT_EQ(tag.get(), (observe::MemoryTag{MemoryCategory::Input, observe::kNoUnit}));
}

TEST(MemorySampling, TakesEachBoundaryOfAFewAndEachNthOfMany)
{
    MemorySampling sampling(200);
    const auto step = [&](int boundaries) {
        sampling.stepBegan();
        int taken = 0;
        for (int i = 0; i < boundaries; ++i)
            taken += sampling.boundary();
        return taken;
    };
    EXPECT_EQ(step(150), 150);
    EXPECT_EQ(step(1000), 200); // the first of its kind: cut off
    EXPECT_EQ(step(1000), 200); // spread over the step
    EXPECT_EQ(step(999), 200);
    EXPECT_EQ(step(100), 20); // what came before told it so
    EXPECT_EQ(step(100), 100);
}

} // namespace
} // namespace shardscope::collect
