// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/text.h"
#include "ui/timeline/ticks.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

TEST(Ticks, AreRoundAndFarEnoughApart)
{
    for (int64_t length = 100; length < 4'000'000'000'000; length = length * 3 / 2) {
        for (const double width : {300.0, 1280.0, 3840.0}) {
            const TimeRange range{length / 7 - 1000, length / 7 - 1000 + length};
            const Ticks ticks = ticksFor(range, width, 90);
            int64_t mantissa = ticks.spacingNs;
            while (mantissa % 10 == 0)
                mantissa /= 10;
            EXPECT_TRUE(mantissa == 1 || mantissa == 2 || mantissa == 5) << ticks.spacingNs;
            EXPECT_GE(static_cast<double>(ticks.spacingNs) * width / static_cast<double>(length), 90 - 1e-9);
            EXPECT_LE(ticks.timesNs.size(), static_cast<size_t>(width / 90) + 1);
            for (const int64_t time : ticks.timesNs) {
                EXPECT_EQ(time % ticks.spacingNs, 0);
                EXPECT_TRUE(range.contains(time));
            }
        }
    }
}

TEST(Ticks, TextHasTheDigitsThatTheSpacingNeeds)
{
    EXPECT_EQ(timeMarkText(0, 1000), QStringLiteral("0"));
    EXPECT_EQ(timeMarkText(1'250'000'000, 50'000'000), QStringLiteral("1.25 s"));
    EXPECT_EQ(timeMarkText(1'200'000'000, 50'000'000), QStringLiteral("1.20 s"));
    EXPECT_EQ(timeMarkText(3'000'000'000, 1'000'000'000), QStringLiteral("3 s"));
    EXPECT_EQ(timeMarkText(12'340'500, 500), QStringLiteral("12.3405 ms"));
    EXPECT_EQ(timeMarkText(700, 100), QStringLiteral("700 ns"));
    EXPECT_EQ(timeMarkText(1'700, 100), QStringLiteral("1.7 µs"));
    EXPECT_EQ(timeMarkText(-1'700, 100), QStringLiteral("-1.7 µs"));
}

TEST(Ticks, StepsWithRoomHaveTheirNumbers)
{
    // The rest of a step at the left edge takes no place from the step that has room.
    EXPECT_EQ(numberedBands({{172, 180, 16}, {180, 400, 16}, {400, 600, 16}}, 1280), (std::vector<size_t>{1, 2}));
    // Alone, it has its number over what follows.
    EXPECT_EQ(numberedBands({{172, 180, 16}, {180, 184, 16}}, 1280), (std::vector<size_t>{0}));
    // None is cut at the right edge.
    EXPECT_EQ(numberedBands({{100, 200, 16}, {200, 212, 16}}, 212), (std::vector<size_t>{0}));
    std::vector<StepBand> narrow;
    for (int i = 0; i < 200; ++i)
        narrow.push_back({i * 3.0, i * 3.0 + 3, 20});
    const auto numbered = numberedBands(narrow, 600);
    EXPECT_GE(numbered.size(), 12u);
    for (size_t k = 1; k < numbered.size(); ++k)
        EXPECT_GE(narrow[numbered[k]].left - narrow[numbered[k - 1]].left, 20);
}

TEST(Ticks, NothingForNothing)
{
    EXPECT_TRUE(ticksFor({5, 5}, 100, 80).timesNs.empty());
    EXPECT_TRUE(ticksFor({0, 5}, 0, 80).timesNs.empty());
}

} // namespace
} // namespace shardscope::ui::timeline
