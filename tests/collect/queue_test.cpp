// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/bounded_queue.h"
#include "profiler/collect/text_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace shardscope::collect {
namespace {

TEST(BoundedQueue, RefusesWhatDoesNotFitAndKeepsTheOrder)
{
    BoundedQueue<int> queue(4);
    for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(queue.push(int{i}));
    EXPECT_FALSE(queue.push(4));
    for (int i = 0; i < 4; ++i) {
        int value = -1;
        ASSERT_TRUE(queue.pop(value));
        EXPECT_EQ(value, i);
    }
    int value = -1;
    EXPECT_FALSE(queue.pop(value));
    EXPECT_TRUE(queue.push(5));
}

TEST(BoundedQueue, LeavesARefusedValueWithItsOwner)
{
    BoundedQueue<std::unique_ptr<int>> queue(2);
    EXPECT_TRUE(queue.push(std::make_unique<int>(1)));
    EXPECT_TRUE(queue.push(std::make_unique<int>(2)));
    auto third = std::make_unique<int>(3);
    EXPECT_FALSE(queue.push(std::move(third)));
    ASSERT_NE(third, nullptr);
    EXPECT_EQ(*third, 3);
}

TEST(BoundedQueue, LosesNothingBetweenThreads)
{
    constexpr int kThreads = 4;
    constexpr int64_t kEach = 20'000;
    BoundedQueue<int64_t> queue(256);
    std::vector<std::thread> producers;
    for (int t = 0; t < kThreads; ++t) {
        producers.emplace_back([&queue, t] {
            for (int64_t i = 0; i < kEach; ++i) {
                while (!queue.push(t * kEach + i))
                    std::this_thread::yield();
            }
        });
    }
    std::vector<int64_t> last(kThreads, -1);
    int64_t sum = 0;
    for (int64_t taken = 0; taken < kThreads * kEach;) {
        int64_t value = 0;
        if (!queue.pop(value)) {
            std::this_thread::yield();
            continue;
        }
        ++taken;
        sum += value;
        // What one thread pushed comes out in its order.
        const auto thread = static_cast<size_t>(value / kEach);
        EXPECT_LT(last[thread], value);
        last[thread] = value;
    }
    for (std::thread &producer : producers)
        producer.join();
    const int64_t n = kThreads * kEach;
    EXPECT_EQ(sum, n * (n - 1) / 2);
}

TEST(TextTable, GivesEachTextOneNumberFromAnyThread)
{
    TextTable table;
    std::vector<std::vector<uint32_t>> numbers(4);
    std::vector<std::thread> threads;
    for (auto &mine : numbers) {
        threads.emplace_back([&table, &mine] {
            for (int i = 0; i < 500; ++i)
                mine.push_back(table.number("text " + std::to_string(i)));
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    for (const auto &mine : numbers)
        EXPECT_EQ(mine, numbers[0]);
    EXPECT_EQ(table.text(numbers[0][7]), "text 7");
    EXPECT_EQ(table.text(numbers[0][499]), "text 499");
}

TEST(TextTable, OverflowsIntoOneNumber)
{
    TextTable table;
    for (uint32_t i = 0; i < TextTable::kMaximum + 10; ++i)
        table.number(std::to_string(i));
    EXPECT_EQ(table.text(table.number("one more")), TextTable::kOverflow);
    EXPECT_EQ(table.text(table.number("5")), "5");
}

} // namespace
} // namespace shardscope::collect
