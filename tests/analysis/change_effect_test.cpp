// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/change_effect.h"

#include "profiler/analysis/rank_test.h"
#include "profiler/store/writer.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace shardscope::analysis {
namespace {

using testing::HasSubstr;

TEST(RankTest, KnowsHowLikelyUnevenRanksAre)
{
    std::vector<double> low(10), high(10);
    std::iota(low.begin(), low.end(), 1);
    std::iota(high.begin(), high.end(), 11);
    // U = 0 of a mean of 50 and a variance of 175: z = 49.5 ÷ √175.
    EXPECT_NEAR(mannWhitneyP(low, high), std::erfc(49.5 / std::sqrt(350.0)), 1e-12);
    EXPECT_DOUBLE_EQ(mannWhitneyP(low, high), mannWhitneyP(high, low));
    EXPECT_EQ(mannWhitneyP(low, low), 1);
    EXPECT_EQ(mannWhitneyP({}, low), 1);
    const std::vector<double> same(20, 5.0);
    EXPECT_EQ(mannWhitneyP(same, same), 1);
    // With ties: a = {1 1 2}, b = {2 3 3}: ranks of a are 1.5 1.5 3.5, U = 0.5, Σt³−t = 6 + 6 + 6.
    const std::vector<double> a = {1, 1, 2}, b = {2, 3, 3};
    EXPECT_NEAR(mannWhitneyP(a, b), std::erfc(3.5 / std::sqrt(2 * 9.0 / 12 * (7 - 18.0 / 30))), 1e-12);
}

TEST(RankTest, QuantilesAreInterpolated)
{
    const std::vector<double> values = {1, 2, 4, 8};
    EXPECT_EQ(quantile(values, 0), 1);
    EXPECT_EQ(quantile(values, 0.5), 3);
    EXPECT_EQ(quantile(values, 1), 8);
    EXPECT_EQ(quantile(values, 0.25), 1.75);
}

/// What a step of a rank takes, by its number.
struct Figures
{
    int64_t stepNs = 0;
    std::optional<int64_t> peakBytes = 0;
    std::optional<int64_t> exposedNs = 0;
};
using FiguresOf = std::function<Figures(int64_t rank, int64_t number)>;

class ChangeEffectTest : public testing::Test
{
protected:
    /// Two ranks with these steps; the configuration changes before each of `changes`.
    void write(int64_t steps, const std::vector<int64_t> &changes, const FiguresOf &figuresOf)
    {
        std::filesystem::create_directories(run() / "attempt-1");
        for (const int64_t rank : {0, 1}) {
            auto writer = store::Writer::open(run() / "attempt-1" / fmt::format("rank-{}.sqlite", rank)).value();
            writer.put(store::ProcessRow{.rank = rank, .worldSize = 2, .pid = 10 + rank, .startedNs = 1});
            writer.put(store::MetaRow{.key = "origin_ns", .value = "0"});
            writer.put(store::ConfigRow{.configId = 1, .firstStep = 1});
            int64_t config = 1;
            for (const int64_t change : changes)
                writer.put(store::ConfigRow{.configId = ++config,
                                            .firstStep = change,
                                            .changedJson = R"({"parallel.prefetch":{"from":"pre","to":"off"}})",
                                            .origin = "user"});
            for (int64_t number = 1, startNs = 1000; number <= steps; ++number)
                startNs = writeStep(writer, number, startNs, figuresOf(rank, number));
            ASSERT_TRUE(writer.close());
        }
    }
    static int64_t writeStep(store::Writer &writer, int64_t number, int64_t startNs, const Figures &figures)
    {
        store::StepRow row{.stepId = number, .number = number, .startNs = startNs, .endNs = startNs + figures.stepNs};
        row.peakAllocatedBytes = figures.peakBytes;
        if (figures.exposedNs)
            row.sums.emplace().exposedCommunicationNs = *figures.exposedNs;
        writer.put(row);
        return *row.endNs;
    }
    std::optional<ChangeEffect> effect()
    {
        m_recording.emplace(store::Recording::open(run(), {.cacheFolder = m_folder.path() / "cache"}).value());
        return lastChangeEffect(*m_recording).value();
    }
    std::filesystem::path run() const { return m_folder.path() / "run"; }

    test::TemporaryFolder m_folder;
    std::optional<store::Recording> m_recording;
};

/// Slower and leaner from step 31 on; the second rank is slower and holds more.
Figures slowerFrom31(int64_t rank, int64_t number)
{
    const bool after = number > 30;
    const bool settling = number > 30 && number <= 33;
    const int64_t noise = number * 7919 % 13;
    return {(settling ? 90'000
             : after  ? 2000
                      : 1000) +
                noise + 100 * rank,
            (after ? 50 : 80) + 10 * rank, (after ? 400 : 100) + 20 * rank};
}

TEST_F(ChangeEffectTest, ComparesMediansOfTheStepsBeforeAndAfter)
{
    write(60, {31}, slowerFrom31);
    const auto found = effect();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->firstStep, 31);
    EXPECT_EQ(found->origin, "user");
    EXPECT_THAT(found->changedJson, HasSubstr("parallel.prefetch"));
    EXPECT_EQ(found->stepsAfter, 27u);
    EXPECT_EQ(found->stepNs.before->steps, 27u) << "the first three of the run are left out too";
    EXPECT_EQ(found->stepNs.after->steps, 27u);
    EXPECT_NEAR(found->stepNs.before->median, 1106, 7) << "of the slowest rank";
    EXPECT_NEAR(found->stepNs.after->median, 2106, 7) << "the settling steps are left out";
    EXPECT_GT(found->stepNs.after->upper, found->stepNs.after->lower);
    EXPECT_TRUE(found->stepNs.significant());
    EXPECT_EQ(found->peakBytes.before->median, 90);
    EXPECT_EQ(found->peakBytes.after->median, 60);
    EXPECT_EQ(found->exposedNs.before->median, 110) << "the mean of the ranks";
    EXPECT_EQ(found->exposedNs.after->median, 410);
    EXPECT_TRUE(found->exposedNs.significant());
}

TEST_F(ChangeEffectTest, AgreesWithItsSql)
{
    write(60, {31}, slowerFrom31);
    const auto found = effect();
    const auto rows = m_recording->sql(found->sql);
    ASSERT_TRUE(rows) << rows.error().text;
    EXPECT_EQ(rows->columns.size(), 4u);
    EXPECT_EQ(rows->rows.size(), 57u);
    std::vector<double> after;
    for (const auto &row : rows->rows) {
        if (std::get<int64_t>(row[0]) >= 34)
            after.push_back(static_cast<double>(std::get<int64_t>(row[1])));
    }
    std::ranges::sort(after);
    EXPECT_EQ(quantile(after, 0.5), found->stepNs.after->median);
}

TEST_F(ChangeEffectTest, ChanceIsNotSignificant)
{
    write(60, {31}, [](int64_t, int64_t number) -> Figures { return {1000 + number * 7919 % 101, 80, 100}; });
    const auto found = effect();
    EXPECT_TRUE(found->stepNs.p);
    EXPECT_FALSE(found->stepNs.significant());
    EXPECT_FALSE(found->peakBytes.significant());
}

TEST_F(ChangeEffectTest, SaysNothingOfTooFewSteps)
{
    write(42, {31}, slowerFrom31);
    const auto found = effect();
    EXPECT_EQ(found->stepsAfter, 9u);
    EXPECT_TRUE(found->stepNs.before);
    EXPECT_FALSE(found->stepNs.after);
    EXPECT_FALSE(found->stepNs.significant());
}

TEST_F(ChangeEffectTest, TheStepsBeforeAreThoseSinceTheChangeBefore)
{
    write(60, {20, 31}, slowerFrom31);
    const auto found = effect();
    EXPECT_EQ(found->firstStep, 31);
    EXPECT_FALSE(found->stepNs.before) << "8 steps are too few";
    EXPECT_TRUE(found->stepNs.after);
}

TEST_F(ChangeEffectTest, WhatWasNotMeasuredIsNotCompared)
{
    write(60, {31}, [](int64_t rank, int64_t number) {
        Figures figures = slowerFrom31(rank, number);
        if (rank == 1)
            figures.peakBytes = figures.exposedNs = std::nullopt;
        return figures;
    });
    const auto found = effect();
    EXPECT_TRUE(found->stepNs.significant());
    EXPECT_FALSE(found->peakBytes.before);
    EXPECT_FALSE(found->exposedNs.after);
}

TEST_F(ChangeEffectTest, IsAbsentWhereNothingWasChanged)
{
    write(20, {}, slowerFrom31);
    EXPECT_FALSE(effect());
}

} // namespace
} // namespace shardscope::analysis
