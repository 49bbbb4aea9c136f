// SPDX-License-Identifier: Apache-2.0
#include "core/data/permutation.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using shardscope::data::Permutation;

static std::vector<uint64_t> orderOf(uint64_t size, uint64_t seed, uint64_t epoch)
{
    const Permutation permutation(size, seed, epoch);
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < size; ++i)
        order.push_back(permutation(i));
    return order;
}

TEST(Permutation, visitsEveryIndexOnce)
{
    for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1023, 1024, 1025, 70000}) {
        std::vector<uint64_t> order = orderOf(size, 7, 3);
        std::ranges::sort(order);
        for (uint64_t i = 0; i < size; ++i)
            ASSERT_EQ(order[i], i) << size;
    }
}

TEST(Permutation, differsByEpochAndSeed)
{
    EXPECT_EQ(orderOf(1000, 1, 0), orderOf(1000, 1, 0));
    EXPECT_NE(orderOf(1000, 1, 0), orderOf(1000, 1, 1));
    EXPECT_NE(orderOf(1000, 1, 0), orderOf(1000, 2, 0));
}

TEST(Permutation, looksShuffled)
{
    // Of a random order about one index stays in place, and neighbours are size / 3 apart on average.
    const uint64_t size = 10000;
    const std::vector<uint64_t> order = orderOf(size, 0, 0);
    int inPlace = 0;
    double distance = 0;
    for (uint64_t i = 0; i + 1 < size; ++i) {
        inPlace += order[i] == i;
        distance += std::abs(static_cast<double>(order[i]) - static_cast<double>(order[i + 1]));
    }
    EXPECT_LT(inPlace, 10);
    EXPECT_NEAR(distance / static_cast<double>(size), static_cast<double>(size) / 3, static_cast<double>(size) / 30);
}

TEST(Permutation, staysAsItIs)
{
    // Runs of older versions are resumed with these orders.
    EXPECT_EQ(orderOf(8, 42, 0), (std::vector<uint64_t>{5, 0, 3, 4, 2, 1, 6, 7}));
}
