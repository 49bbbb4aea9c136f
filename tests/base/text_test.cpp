// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <gtest/gtest.h>
#include <vector>

using namespace shardscope;

TEST(FormatBytes, keepsThreeDigitsAndRoundsIntoTheNextUnit)
{
    EXPECT_EQ(formatBytes(0), "0 B");
    EXPECT_EQ(formatBytes(1023), "1023 B");
    EXPECT_EQ(formatBytes(1024), "1.00 KiB");
    EXPECT_EQ(formatBytes(1024 * 1024 - 1), "1.00 MiB");
    EXPECT_EQ(formatBytes(int64_t{25} << 29), "12.5 GiB");
    EXPECT_EQ(formatBytes(-2048), "-2.00 KiB");
}

TEST(FormatDuration, choosesTheUnitThatReads)
{
    EXPECT_EQ(formatDuration(850), "850 ns");
    EXPECT_EQ(formatDuration(12'400), "12.4 µs");
    EXPECT_EQ(formatDuration(999'600'000), "1.00 s");
    EXPECT_EQ(formatDuration(200'000'000'000), "3 min 20 s");
    EXPECT_EQ(formatDuration(7'500'000'000'000), "2 h 05 min");
}

TEST(FormatCount, isDecimal)
{
    EXPECT_EQ(formatCount(999), "999");
    EXPECT_EQ(formatCount(18'200), "18.2 k");
    EXPECT_EQ(formatCount(1.364e9), "1.36 B");
}

TEST(NearestName, findsSlipsAndForgottenSections)
{
    const std::vector<std::string> keys = {"train.steps", "train.seed", "optimizer.learning_rate"};
    EXPECT_EQ(nearestName("train.stesp", keys), "train.steps");
    EXPECT_EQ(nearestName("learning_rat", keys), "optimizer.learning_rate");
    EXPECT_EQ(nearestName("completely.unrelated", keys), std::nullopt);
}
