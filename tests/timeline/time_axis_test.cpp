// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_axis.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

TimeAxis axisOf(TimeRange limits, double width)
{
    TimeAxis axis;
    axis.setLimits(limits);
    axis.setWidth(width);
    axis.fit();
    return axis;
}

TEST(TimeAxis, FitShowsAllAndPositionsAreLinear)
{
    const TimeAxis axis = axisOf({1000, 2000}, 100);
    EXPECT_DOUBLE_EQ(axis.xOf(1000), 0);
    EXPECT_DOUBLE_EQ(axis.xOf(1500), 50);
    EXPECT_EQ(axis.timeAt(25), 1250);
}

TEST(TimeAxis, ZoomKeepsTheTimeUnderTheCursor)
{
    TimeAxis axis = axisOf({0, 1'000'000'000'000}, 1000);
    for (const double x : {10.0, 333.0, 990.0}) {
        axis.fit();
        const int64_t before = axis.timeAt(x);
        for (int i = 0; i < 30; ++i)
            axis.zoomAt(x, 0.8);
        EXPECT_LE(std::abs(axis.timeAt(x) - before), static_cast<int64_t>(axis.nsPerPixel()) + 1) << x;
        EXPECT_LT(axis.visible().durationNs(), 2'000'000'000);
    }
}

TEST(TimeAxis, ZoomInEndsAtTheShortestAndOutAtTheLimits)
{
    TimeAxis axis = axisOf({-500, 1'000'000}, 640);
    for (int i = 0; i < 200; ++i)
        axis.zoomAt(320, 0.5);
    EXPECT_EQ(axis.visible().durationNs(), TimeAxis::kShortestNs);
    for (int i = 0; i < 200; ++i)
        axis.zoomAt(5, 2);
    EXPECT_EQ(axis.visible(), axis.limits());
}

TEST(TimeAxis, PanStopsAtBothEnds)
{
    TimeAxis axis = axisOf({0, 1000}, 100);
    axis.setVisible({400, 600});
    axis.panPixels(10);
    EXPECT_EQ(axis.visible(), (TimeRange{420, 620}));
    axis.panPixels(1e6);
    EXPECT_EQ(axis.visible(), (TimeRange{800, 1000}));
    axis.panPixels(-1e6);
    EXPECT_EQ(axis.visible(), (TimeRange{0, 200}));
}

TEST(TimeAxis, EpochSizedTimesLoseNoNanosecond)
{
    const int64_t origin = 1'764'000'000'000'000'000;
    TimeAxis axis = axisOf({origin, origin + 1000}, 1000);
    for (int64_t i = 0; i < 1000; i += 7)
        EXPECT_EQ(axis.timeAt(axis.xOf(origin + i)), origin + i);
}

TEST(TimeAxis, NewLimitsKeepTheViewAndAViewOfAllStaysOne)
{
    TimeAxis axis = axisOf({0, 1000}, 100);
    axis.setLimits({0, 2000});
    EXPECT_TRUE(axis.showsAll());
    axis.setVisible({500, 700});
    axis.setLimits({0, 4000});
    EXPECT_EQ(axis.visible(), (TimeRange{500, 700}));
    axis.followEnd();
    EXPECT_EQ(axis.visible(), (TimeRange{3800, 4000}));
    EXPECT_TRUE(axis.atEnd());
    axis.setLimits({0, 300});
    EXPECT_EQ(axis.visible(), (TimeRange{100, 300}));
}

TEST(TimeAxis, RevealMovesAsLittleAsPossible)
{
    TimeAxis axis = axisOf({0, 100'000}, 100);
    axis.setVisible({1000, 2000});
    axis.reveal({1200, 1300});
    EXPECT_EQ(axis.visible(), (TimeRange{1000, 2000}));
    axis.reveal({5000, 5100});
    EXPECT_EQ(axis.visible(), (TimeRange{4200, 5200}));
    axis.reveal({10'000, 20'000});
    EXPECT_EQ(axis.visible(), (TimeRange{7500, 22'500}));
}

TEST(TimeAxis, AnEmptyRecordingHasAViewAllTheSame)
{
    const TimeAxis axis = axisOf({50, 50}, 100);
    EXPECT_EQ(axis.visible().durationNs(), TimeAxis::kShortestNs);
    EXPECT_GT(axis.nsPerPixel(), 0);
}

} // namespace
} // namespace shardscope::ui::timeline
