// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/interval_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shardscope::store {
namespace {

TimedSpan span(int64_t startNs, int64_t endNs, SpanCategory category, std::optional<Phase> phase = Phase::Forward,
               std::optional<Operation> operation = {})
{
    return {startNs, endNs, category, phase, operation, 1, false};
}

TEST(IntervalSums, NothingRecordedIsIdle)
{
    const StepSums sums = waterfallOf({}, 100, 350);
    EXPECT_EQ(sums, (StepSums{.wallNs = 250, .idleNs = 250, .idleOtherNs = 250}));
}

TEST(IntervalSums, ComputeHidesCommunicationHidesCopy)
{
    // 0 .. 10 compute, 5 .. 20 all-gather, 15 .. 30 copy, 30 .. 40 nothing.
    const std::vector<TimedSpan> spans = {
        span(0, 10, SpanCategory::Compute),
        span(5, 20, SpanCategory::Communication, Phase::Forward, Operation::AllGather),
        span(15, 30, SpanCategory::Copy),
    };
    const StepSums expected{.wallNs = 40,
                            .computeNs = 10,
                            .communicationNs = 15,
                            .overlappedCommunicationNs = 5,
                            .exposedCommunicationNs = 10,
                            .copyNs = 15,
                            .exposedCopyNs = 10,
                            .idleNs = 10,
                            .exposedAllGatherNs = 10,
                            .idleOtherNs = 10};
    EXPECT_EQ(waterfallOf(spans, 0, 40), expected);
}

TEST(IntervalSums, SpansAreCutToTheStep)
{
    const std::vector<TimedSpan> spans = {span(-50, 5, SpanCategory::Compute), span(8, 100, SpanCategory::Host),
                                          span(200, 300, SpanCategory::Compute)};
    const StepSums expected{.wallNs = 10, .computeNs = 5, .idleNs = 5, .idleHostNs = 2, .idleOtherNs = 3};
    EXPECT_EQ(waterfallOf(spans, 0, 10), expected);
}

TEST(IntervalSums, OptimizerIsTakenOutOfComputeOnlyWhereItRunsAlone)
{
    const std::vector<TimedSpan> spans = {span(0, 10, SpanCategory::Compute, Phase::Backward),
                                          span(5, 20, SpanCategory::Compute, Phase::Optimizer)};
    const StepSums sums = waterfallOf(spans, 0, 20);
    EXPECT_EQ(sums.computeNs, 20);
    EXPECT_EQ(sums.optimizerNs, 10);
}

TEST(IntervalSums, IdleSpanOfACollectiveIsAPeersFault)
{
    const std::vector<TimedSpan> spans = {span(0, 4, SpanCategory::Idle, Phase::Forward, Operation::AllReduce),
                                          span(4, 6, SpanCategory::Idle), span(0, 10, SpanCategory::Host)};
    const StepSums expected{.wallNs = 10, .idleNs = 10, .idleHostNs = 6, .idlePeerNs = 4};
    EXPECT_EQ(waterfallOf(spans, 0, 10), expected);
}

TEST(IntervalSums, InAThreadTheInnermostSpanCounts)
{
    // A forward pass of 0 .. 100 with a wait of 20 .. 50 inside, in which a copy of 30 .. 35 is made.
    std::vector<TimedSpan> spans = {
        span(0, 100, SpanCategory::Compute),
        span(20, 50, SpanCategory::Communication, Phase::Forward, Operation::AllGather),
        span(30, 35, SpanCategory::Copy),
    };
    for (TimedSpan &span : spans)
        span.nests = true;
    const StepSums sums = waterfallOf(spans, 0, 100);
    EXPECT_EQ(sums.computeNs, 70);
    EXPECT_EQ(sums.exposedAllGatherNs, 25);
    EXPECT_EQ(sums.exposedCopyNs, 5);
    EXPECT_EQ(sums.idleNs, 0);
}

TEST(IntervalSums, AChildThatStartsWithItsParentIsTheInnerOne)
{
    std::vector<TimedSpan> spans = {
        span(0, 40, SpanCategory::Communication, Phase::Forward, Operation::AllReduce),
        span(0, 100, SpanCategory::Compute),
    };
    for (TimedSpan &span : spans)
        span.nests = true;
    const StepSums sums = waterfallOf(spans, 0, 100);
    EXPECT_EQ(sums.computeNs, 60);
    EXPECT_EQ(sums.exposedAllReduceNs, 40);
}

TEST(IntervalSums, SpansOfAThreadThatOverlapWithoutNesting)
{
    // Not from one thread's stack, but recordings of others have them: the later start wins while it lasts.
    std::vector<TimedSpan> spans = {span(0, 10, SpanCategory::Compute), span(5, 15, SpanCategory::Copy)};
    for (TimedSpan &span : spans)
        span.nests = true;
    const StepSums sums = waterfallOf(spans, 0, 20);
    EXPECT_EQ(sums.computeNs, 5);
    EXPECT_EQ(sums.copyNs, 10);
    EXPECT_EQ(sums.idleNs, 5);
}

/// What waterfallOf() says, found by asking every nanosecond.
StepSums bruteForce(const std::vector<TimedSpan> &spans, int64_t startNs, int64_t endNs)
{
    StepSums sums{.wallNs = endNs - startNs};
    for (int64_t t = startNs; t < endNs; ++t) {
        const auto open = [&](auto &&matches) {
            return std::any_of(spans.begin(), spans.end(), [&](const TimedSpan &span) {
                return span.startNs <= t && t < span.endNs && matches(span);
            });
        };
        const auto is = [&](SpanCategory category) {
            return open([=](const TimedSpan &span) { return span.category == category; });
        };
        const auto communicates = [&](Operation operation) {
            return open([=](const TimedSpan &span) {
                return span.category == SpanCategory::Communication && span.operation == operation;
            });
        };
        const bool compute = is(SpanCategory::Compute), communication = is(SpanCategory::Communication);
        const bool otherCompute = open([](const TimedSpan &span) {
            return span.category == SpanCategory::Compute && span.phase != Phase::Optimizer;
        });
        const bool peer =
            open([](const TimedSpan &span) { return span.category == SpanCategory::Idle && span.operation; });
        sums.computeNs += compute;
        sums.optimizerNs += compute && !otherCompute;
        sums.communicationNs += communication;
        sums.overlappedCommunicationNs += communication && compute;
        sums.copyNs += is(SpanCategory::Copy);
        if (!compute && communication) {
            ++sums.exposedCommunicationNs;
            if (communicates(Operation::AllGather))
                ++sums.exposedAllGatherNs;
            else if (communicates(Operation::ReduceScatter))
                ++sums.exposedReduceScatterNs;
            else if (communicates(Operation::AllReduce))
                ++sums.exposedAllReduceNs;
            else
                ++sums.exposedOtherCommunicationNs;
        } else if (!compute && is(SpanCategory::Copy)) {
            ++sums.exposedCopyNs;
        } else if (!compute) {
            ++sums.idleNs;
            ++(peer ? sums.idlePeerNs : is(SpanCategory::Host) ? sums.idleHostNs : sums.idleOtherNs);
        }
    }
    return sums;
}

void expectPartsSumToTheWall(const StepSums &sums)
{
    EXPECT_EQ(sums.computeNs + sums.exposedCommunicationNs + sums.exposedCopyNs + sums.idleNs, sums.wallNs);
    EXPECT_EQ(sums.communicationNs, sums.overlappedCommunicationNs + sums.exposedCommunicationNs);
    EXPECT_EQ(sums.exposedAllGatherNs + sums.exposedReduceScatterNs + sums.exposedAllReduceNs +
                  sums.exposedOtherCommunicationNs,
              sums.exposedCommunicationNs);
    EXPECT_EQ(sums.idleHostNs + sums.idlePeerNs + sums.idleOtherNs, sums.idleNs);
    EXPECT_LE(sums.optimizerNs, sums.computeNs);
}

TEST(IntervalSums, EqualsASweepOverEveryNanosecond)
{
    std::mt19937_64 random(20240607);
    const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
    for (int round = 0; round < 300; ++round) {
        std::vector<TimedSpan> spans;
        const int64_t count = below(30);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t startNs = below(400) - 50;
            TimedSpan span{startNs, startNs + below(60), static_cast<SpanCategory>(below(5))};
            if (below(4) > 0)
                span.phase = static_cast<Phase>(below(7));
            if (span.category == SpanCategory::Communication || below(3) == 0)
                span.operation = static_cast<Operation>(below(7));
            spans.push_back(span);
        }
        const StepSums sums = waterfallOf(spans, 0, 300);
        ASSERT_EQ(sums, bruteForce(spans, 0, 300)) << "round " << round;
        expectPartsSumToTheWall(sums);
    }
}

TEST(IntervalSums, PiecesOfRandomNestsCoverTheUnionOnce)
{
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<TimedSpan> lane;
        std::vector<Interval> intervals;
        for (int i = 0; i < 20; ++i) {
            const auto startNs = static_cast<int64_t>(random() % 200);
            const auto endNs = startNs + static_cast<int64_t>(random() % 50);
            lane.push_back({startNs, endNs, SpanCategory::Compute});
            intervals.push_back({startNs, endNs});
        }
        int64_t unionNs = 0;
        for (const Interval &interval : uniteIntervals(intervals))
            unionNs += interval.endNs - interval.startNs;
        std::vector<TimedSpan> pieces = innermostPieces(lane);
        std::sort(pieces.begin(), pieces.end(),
                  [](const TimedSpan &a, const TimedSpan &b) { return a.startNs < b.startNs; });
        int64_t piecesNs = 0;
        for (size_t i = 0; i < pieces.size(); ++i) {
            piecesNs += pieces[i].endNs - pieces[i].startNs;
            ASSERT_TRUE(i == 0 || pieces[i - 1].endNs <= pieces[i].startNs) << "round " << round;
        }
        ASSERT_EQ(piecesNs, unionNs) << "round " << round;
    }
}

TEST(Intervals, UnionMergesTouchingAndDropsEmpty)
{
    const std::vector<Interval> expected = {{0, 10}, {12, 20}};
    EXPECT_EQ(uniteIntervals({{12, 20}, {0, 5}, {5, 10}, {11, 11}, {13, 15}}), expected);
}

TEST(Intervals, UncoveredIsWhatIsLeftOfTheRange)
{
    const std::vector<Interval> united = {{0, 10}, {20, 30}, {40, 50}};
    EXPECT_EQ(uncoveredNs(united, 5, 45), 10 + 10);
    EXPECT_EQ(uncoveredNs(united, 10, 20), 10);
    EXPECT_EQ(uncoveredNs(united, 22, 28), 0);
    EXPECT_EQ(uncoveredNs({}, 3, 5), 2);
    EXPECT_EQ(uncoveredNs(united, 9, 9), 0);
}

} // namespace
} // namespace shardscope::store
