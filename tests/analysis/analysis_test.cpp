// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/analysis.h"

#include "profiler/analysis/summaries.h"
#include "recording_fixture.h"
#include "schema_check.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace shardscope::analysis {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AnalysisTest : public testing::Test
{
protected:
    Analysis analysisOf(const test::FixtureOptions &options)
    {
        const auto written = test::writeFixtureRecording(run(), options);
        if (!written)
            throw std::runtime_error(written.error().text);
        return read();
    }
    Analysis read()
    {
        m_recording.emplace(std::move(*store::Recording::open(run(), {.cacheFolder = m_folder.path() / "cache"})));
        auto analysis = analyze(*m_recording);
        if (!analysis)
            throw std::runtime_error(analysis.error().text);
        return std::move(*analysis);
    }
    std::filesystem::path run() const { return m_folder.path() / "run"; }
    SQLite::Database database(int rank) const
    {
        return {(run() / "attempt-1" / fmt::format("rank-{}.sqlite", rank)).string(), SQLite::OPEN_READWRITE};
    }
    void update(int rank, const std::string &steps) const { database(rank).exec("UPDATE step SET " + steps); }

    test::TemporaryFolder m_folder;
    std::optional<store::Recording> m_recording;
};

const Finding *findingOf(const Analysis &analysis, std::string_view cause)
{
    for (const Finding &finding : analysis.findings) {
        if (finding.cause == cause)
            return &finding;
    }
    return nullptr;
}

const CollectiveSummary &collectiveOf(const Analysis &analysis, Operation operation, std::string_view unit, Phase phase)
{
    for (const CollectiveSummary &collective : analysis.collectives) {
        if (collective.operation == operation && collective.unit == unit && collective.phase == phase)
            return collective;
    }
    throw std::runtime_error("no such collective");
}

TEST_F(AnalysisTest, RanksAddUp)
{
    const Analysis analysis = analysisOf({});
    ASSERT_EQ(analysis.ranks.size(), 2u);
    // Four steps of 10 ms, see recording_fixture.h. U = 4.
    const RankSummary &rank0 = analysis.ranks[0];
    EXPECT_EQ(rank0.all.steps, 4);
    EXPECT_EQ(rank0.all.stepMedianNs, 10'000'000);
    EXPECT_EQ(rank0.all.stepP99Ns, 10'000'000);
    EXPECT_EQ(rank0.device, "Test GPU");
    EXPECT_DOUBLE_EQ(*rank0.all.tokensPerSecond, 1024 / 0.01);
    EXPECT_DOUBLE_EQ(*rank0.all.mfu, 1024 / 0.01 * 1e6 / 1e12);
    // A step: compute 4·400 + 4·800 + 500 = 5300 µs; exposed 2·200 + 300 + 100 = 800; overlapped 6·200 + 3·300 = 2100;
    // copy 50; idle 10000 − 6150 = 3850, of which 300 is the host's input.
    const store::StepSums expected{.wallNs = 40'000'000,
                                   .computeNs = 21'200'000,
                                   .communicationNs = 11'600'000,
                                   .overlappedCommunicationNs = 8'400'000,
                                   .exposedCommunicationNs = 3'200'000,
                                   .copyNs = 200'000,
                                   .exposedCopyNs = 200'000,
                                   .idleNs = 15'400'000,
                                   .exposedAllGatherNs = 1'600'000,
                                   .exposedReduceScatterNs = 1'200'000,
                                   .exposedAllReduceNs = 400'000,
                                   .optimizerNs = 2'000'000,
                                   .idleHostNs = 1'200'000,
                                   .idleOtherNs = 14'200'000};
    EXPECT_EQ(rank0.all.sums, expected);
    // Rank 1 enters each of the 13 collectives of a step 10 µs late: the four exposed ones are shorter by that.
    EXPECT_EQ(analysis.ranks[1].all.sums->exposedCommunicationNs, 4 * (800'000 - 4 * 10'000));
    EXPECT_EQ(analysis.ranks[1].all.sums->overlappedCommunicationNs, 4 * (2'100'000 - 9 * 10'000));
    EXPECT_EQ(analysis.slowest, 0u); // equal walls: the first
}

TEST_F(AnalysisTest, MemoryAtThePeakSumsToThePeak)
{
    const test::FixtureOptions options;
    const Analysis analysis = analysisOf(options);
    for (const RankSummary &rank : analysis.ranks) {
        EXPECT_EQ(rank.peakAllocatedBytes, test::fixturePeakBytes(options));
        int64_t sum = 0;
        for (const int64_t bytes : *rank.memoryAtPeakBytes)
            sum += bytes;
        EXPECT_EQ(sum, rank.peakAllocatedBytes);
    }
}

TEST_F(AnalysisTest, CollectivesCountOnceForAllRanks)
{
    const Analysis analysis = analysisOf({});
    // 4 units × (gather forward, gather backward, reduce-scatter) + the all-reduce.
    EXPECT_EQ(analysis.collectives.size(), 13u);
    const CollectiveSummary &hidden = collectiveOf(analysis, Operation::AllGather, "block.0", Phase::Forward);
    EXPECT_EQ(hidden.count, 4);
    EXPECT_EQ(hidden.inputBytes, 128 * 1024);
    EXPECT_EQ(hidden.outputBytes, 256 * 1024);
    // Rank 1 comes 10 µs late: the transfer takes 190 µs, rank 0 waits 10 µs in each call.
    EXPECT_EQ(hidden.meanNs, 190'000);
    EXPECT_EQ(hidden.p50Ns, 190'000);
    EXPECT_EQ(hidden.p99Ns, 190'000);
    EXPECT_EQ(hidden.waitNs, 4 * 10'000);
    EXPECT_EQ(hidden.exposedNs, 0);
    // nccl-tests: the whole result over the time; on the bus (n − 1)/n of it.
    EXPECT_DOUBLE_EQ(*hidden.algorithmBandwidth, 256 * 1024 / 190e-6);
    EXPECT_DOUBLE_EQ(*hidden.busBandwidth, 128 * 1024 / 190e-6);
    const CollectiveSummary &bare = collectiveOf(analysis, Operation::AllGather, "embedding", Phase::Forward);
    EXPECT_EQ(bare.exposedNs, 4 * (200'000 + 190'000));                          // both ranks
    EXPECT_EQ(analysis.collectives.front().operation, Operation::ReduceScatter); // 300 µs exposed, the most
}

TEST_F(AnalysisTest, NothingToFindInAGoodRun)
{
    const Analysis analysis = analysisOf({});
    EXPECT_TRUE(analysis.complete);
    EXPECT_THAT(analysis.findings, IsEmpty());
    EXPECT_THAT(toText(analysis, "a run"), HasSubstr("none: exposed communication is below 25 %"));
}

TEST_F(AnalysisTest, ExposedCommunicationIsFoundWithItsCause)
{
    test::FixtureOptions options;
    options.prefetch = false;
    const Analysis analysis = analysisOf(options);
    // Without prefetch: 8 gathers of 200, 4 reduce-scatters of 300, an all-reduce of 100: 2900 of 10000 µs.
    const Finding *exposed = findingOf(analysis, "exposed_communication");
    ASSERT_TRUE(exposed);
    EXPECT_DOUBLE_EQ(*exposed->share, 0.29);
    EXPECT_EQ(exposed->gainNs, 2'900'000); // 5300 µs of compute could hide it
    EXPECT_THAT(exposed->text, HasSubstr("Rank 0 spends 29.0 %"));
    EXPECT_THAT(exposed->text, HasSubstr("most of it all-gather"));
    EXPECT_EQ(exposed->evidence.lane, "communication");
    EXPECT_EQ(exposed->evidence.step, 1);
    EXPECT_EQ(exposed->evidence.unit, "head"); // its reduce-scatter is the first of the longest
    EXPECT_EQ(*exposed->evidence.endNs - *exposed->evidence.startNs, 300'000);

    const Finding *prefetch = findingOf(analysis, "prefetch_off");
    ASSERT_TRUE(prefetch);
    EXPECT_DOUBLE_EQ(*prefetch->share, 0.16);
    EXPECT_EQ(prefetch->gainNs, 1'600'000);
    EXPECT_THAT(prefetch->remedy, HasSubstr("parallel.prefetch"));
    EXPECT_EQ(&analysis.findings[0], exposed); // more to gain
}

TEST_F(AnalysisTest, EveryFindingsSqlRuns)
{
    test::FixtureOptions options;
    options.ranks = 4;
    options.prefetch = false;
    options.slowRank = 1;
    options.skipRanks = {2};
    options.droppedRecords = 7;
    const Analysis analysis = analysisOf(options);
    std::vector<std::string> causes;
    for (const Finding &finding : analysis.findings) {
        causes.push_back(finding.cause);
        const auto rows = m_recording->sql(finding.evidenceSql);
        ASSERT_TRUE(rows) << finding.cause << ": " << rows.error().text;
        EXPECT_FALSE(rows->rows.empty()) << finding.cause;
    }
    EXPECT_THAT(causes, testing::UnorderedElementsAre("exposed_communication", "prefetch_off", "dropped_records",
                                                      "missing_ranks"));
}

TEST_F(AnalysisTest, AStragglerIsNamed)
{
    test::FixtureOptions options;
    options.ranks = 3;
    options.slowRank = 1;
    options.slowUs = 1200;
    const Analysis analysis = analysisOf(options);
    const Finding *straggler = findingOf(analysis, "straggler");
    ASSERT_TRUE(straggler);
    EXPECT_EQ(straggler->evidence.rank, 1);
    EXPECT_EQ(straggler->gainNs, 1'200'000); // 6500 against 5300 µs
    EXPECT_DOUBLE_EQ(*straggler->share, 0.12);
}

TEST_F(AnalysisTest, TheFirstStepIsLeftOutWhereOthersAre)
{
    const auto written = test::writeFixtureRecording(run(), {});
    ASSERT_TRUE(written);
    // A first step of a second: all averages would be its own.
    update(0, "end_ns = end_ns + 990000000, wall_ns = wall_ns + 990000000, idle_ns = idle_ns + 990000000, "
              "idle_host_ns = idle_host_ns + 990000000 WHERE number = 0");
    const Analysis analysis = read();
    EXPECT_THAT(analysis.attempts[0].warmUpSteps, ElementsAre(0));
    const RankSummary &rank = analysis.ranks[0];
    EXPECT_EQ(rank.all.steps, 4);
    EXPECT_EQ(rank.all.sums->wallNs, 1'030'000'000);
    EXPECT_EQ(rank.steady.steps, 3);
    EXPECT_EQ(rank.steady.sums->wallNs, 30'000'000);
    EXPECT_EQ(rank.steady.stepP99Ns, 10'000'000);
    EXPECT_DOUBLE_EQ(*rank.steady.tokensPerSecond, 1024 / 0.01);
    EXPECT_DOUBLE_EQ(*rank.steady.sums->exposedCommunicationShare(), 0.08);
    EXPECT_THAT(toText(analysis, "a run"), AllOf(HasSubstr("leave out step 0 as warm-up"), HasSubstr("3 of 4")));
    const json document = json::parse(toJson(analysis));
    EXPECT_EQ(document["attempts"][0]["warm_up_steps"], json({0}));
    EXPECT_EQ(document["ranks"][0]["wall_ns"], 1'030'000'000);
    EXPECT_EQ(document["ranks"][0]["steady"]["wall_ns"], 30'000'000);
}

TEST_F(AnalysisTest, EachAttemptHasItsOwnWarmUp)
{
    ASSERT_TRUE(test::writeFixtureRecording(run(), {}));
    const Analysis analysis = analysisOf({.attempt = 2, .steps = 3, .firstStep = 2});
    ASSERT_EQ(analysis.attempts.size(), 2u);
    EXPECT_THAT(analysis.attempts[0].warmUpSteps, ElementsAre(0));
    EXPECT_THAT(analysis.attempts[1].warmUpSteps, ElementsAre(2));
}

TEST_F(AnalysisTest, OfTwoStepsAllCount)
{
    const Analysis analysis = analysisOf({.steps = 2});
    EXPECT_THAT(analysis.attempts[0].warmUpSteps, IsEmpty());
    EXPECT_EQ(analysis.ranks[0].steady.sums, analysis.ranks[0].all.sums);
    EXPECT_THAT(toText(analysis, "a run"), HasSubstr("of all steps: too few to leave out the first"));
}

TEST_F(AnalysisTest, OfAnotherToolsRecordingAllStepsCount)
{
    ASSERT_TRUE(test::writeFixtureRecording(run(), {}));
    for (const int rank : {0, 1})
        database(rank).exec("UPDATE meta SET value = 'kineto' WHERE key = 'source'");
    const Analysis analysis = read();
    EXPECT_EQ(analysis.source, "kineto");
    EXPECT_THAT(analysis.attempts[0].warmUpSteps, IsEmpty());
    EXPECT_EQ(analysis.ranks[0].steady.steps, 4);
    EXPECT_THAT(toText(analysis, "a run"), HasSubstr("another tool"));
}

TEST_F(AnalysisTest, ARankThatComesLateWithoutComputingLongerIsNamed)
{
    ASSERT_TRUE(test::writeFixtureRecording(run(), {}));
    // Steps of both ranks are equally long. Rank 1 is in an all-gather 3 ms longer, where nothing runs on rank 0.
    update(1, "exposed_all_gather_ns = exposed_all_gather_ns + 3000000, idle_ns = idle_ns - 3000000, "
              "exposed_communication_ns = exposed_communication_ns + 3000000, idle_other_ns = idle_other_ns - 3000000, "
              "communication_ns = communication_ns + 3000000");
    const Analysis analysis = read();
    EXPECT_EQ(analysis.ranks[0].steady.sums->wallNs, analysis.ranks[1].steady.sums->wallNs);
    ASSERT_TRUE(analysis.waitedFor);
    EXPECT_EQ(analysis.ranks[analysis.waitedFor->rank].rank, 0);
    EXPECT_EQ(analysis.waitedFor->lateNs, 3'000'000 - 4 * 10'000); // it enters 4 exposed ones 10 µs earlier
    const Finding *straggler = findingOf(analysis, "straggler");
    ASSERT_TRUE(straggler);
    EXPECT_EQ(straggler->evidence.rank, 0);
    EXPECT_EQ(straggler->gainNs, 2'960'000);
    EXPECT_DOUBLE_EQ(*straggler->share, 0.296);
    const auto rows = m_recording->sql(straggler->evidenceSql);
    ASSERT_TRUE(rows) << rows.error().text;
    EXPECT_EQ(rows->rows.size(), 2u);
    const Finding *exposed = findingOf(analysis, "exposed_communication");
    ASSERT_TRUE(exposed);
    EXPECT_EQ(exposed->evidence.rank, 1);
    EXPECT_THAT(exposed->text, HasSubstr("Up to 2.96 ms of a step is waiting for rank 0"));
    EXPECT_EQ(json::parse(toJson(analysis))["waited_for"], (json{{"attempt", 1}, {"rank", 0}, {"late_ns", 2'960'000}}));
    EXPECT_THAT(toText(analysis, "a run"), HasSubstr("The others wait for rank 0, 2.96 ms a step"));
}

TEST_F(AnalysisTest, LossesAndValidation)
{
    const Analysis analysis = analysisOf({});
    ASSERT_EQ(analysis.steps.size(), 4u);
    EXPECT_EQ(analysis.steps[3].loss, 4.25);
    EXPECT_EQ(analysis.steps[3].tokens, 2048); // of both ranks
    EXPECT_EQ(analysis.steps[3].durationNs, 10'000'000);
    EXPECT_EQ(analysis.steps[3].state, StepState::Ok);
    ASSERT_EQ(analysis.validation.size(), 1u);
    EXPECT_EQ(analysis.validation[0].step, 3);
    EXPECT_EQ(analysis.validation[0].loss, 4.75);
    EXPECT_EQ(analysis.attempts[0].firstRecordedStep, 0);
    EXPECT_EQ(analysis.attempts[0].lastRecordedStep, 3);
}

TEST_F(AnalysisTest, SumsSurviveTheRetention)
{
    const Analysis whole = analysisOf({.steps = 8});
    std::filesystem::remove_all(run());
    const Analysis thinned = analysisOf({.steps = 8, .retention = {.keepSteps = 2, .keepFirst = 1}});
    EXPECT_EQ(thinned.ranks[0].all.sums, whole.ranks[0].all.sums);
    EXPECT_EQ(thinned.ranks[0].memoryAtPeakBytes, whole.ranks[0].memoryAtPeakBytes);
    EXPECT_EQ(thinned.steps.size(), 8u);
    // The first step, the two newest that a newer one has followed, and the last.
    EXPECT_EQ(whole.collectives[0].count, 8);
    EXPECT_EQ(thinned.collectives[0].count, 4);
}

TEST_F(AnalysisTest, ARunThatHasNotBegun)
{
    std::filesystem::create_directories(run() / "attempt-1");
    const Analysis analysis = read();
    EXPECT_FALSE(analysis.complete);
    EXPECT_FALSE(analysis.slowest);
    EXPECT_THAT(toText(analysis, "a run"), HasSubstr("Nothing has been recorded yet"));
    EXPECT_TRUE(json::parse(toJson(analysis))["slowest"].is_null());
}

TEST_F(AnalysisTest, PartsSumToTheWallInJson)
{
    const Analysis analysis = analysisOf({.ranks = 3});
    const json document = json::parse(toJson(analysis));
    for (const json &rank : document["ranks"]) {
        for (const json &figures : {rank, rank["steady"]}) {
            int64_t waterfall = 0;
            for (const auto &[part, ns] : figures["waterfall_ns"].items())
                waterfall += ns.get<int64_t>();
            EXPECT_EQ(waterfall, figures["wall_ns"]);
            const auto ns = [&](const char *key) { return figures[key].get<int64_t>(); };
            EXPECT_EQ(ns("compute_ns") + ns("exposed_communication_ns") + ns("exposed_copy_ns") + ns("idle_ns"),
                      ns("wall_ns"));
        }
    }
}

json schema()
{
    const char *source = std::getenv("SHARDSCOPE_SOURCE");
    std::ifstream file(std::filesystem::path(source ? source : ".") / "profiler/analysis/analyze.schema.json");
    return json::parse(file);
}

TEST_F(AnalysisTest, JsonIsAsItsSchemaSays)
{
    test::FixtureOptions options;
    options.ranks = 3;
    options.prefetch = false;
    options.skipRanks = {2};
    options.killedRank = 1;
    EXPECT_THAT(test::schemaErrors(schema(), json::parse(toJson(analysisOf(options)))), IsEmpty());
}

TEST_F(AnalysisTest, JsonOfNothingIsAsItsSchemaSays)
{
    std::filesystem::create_directories(run() / "attempt-1");
    EXPECT_THAT(test::schemaErrors(schema(), json::parse(toJson(read()))), IsEmpty());
}

TEST_F(AnalysisTest, TheSchemaCheckFindsFaults)
{
    json document = json::parse(toJson(analysisOf({})));
    document["ranks"][0].erase("mfu");
    document["steps"][1]["state"] = "fine";
    document["complete"] = "yes";
    document["extra"] = 1;
    EXPECT_THAT(test::schemaErrors(schema(), document),
                testing::UnorderedElementsAre(HasSubstr("lacks \"mfu\""), HasSubstr("/steps/1/state"),
                                              HasSubstr("/complete is not of type"), HasSubstr("has extra")));
}

TEST_F(AnalysisTest, NanLossIsNullInJson)
{
    const auto written = test::writeFixtureRecording(run(), {});
    ASSERT_TRUE(written);
    update(0, "loss = 9e999, state = 'inf' WHERE number = 2");
    const json document = json::parse(toJson(read()));
    EXPECT_TRUE(document["steps"][2]["loss"].is_null());
    EXPECT_EQ(document["steps"][2]["state"], "inf");
}

TEST(Bandwidth, FactorsAreThoseOfNcclTests)
{
    EXPECT_DOUBLE_EQ(busFactor(Operation::AllGather, 4), 0.75);
    EXPECT_DOUBLE_EQ(busFactor(Operation::ReduceScatter, 8), 0.875);
    EXPECT_DOUBLE_EQ(busFactor(Operation::AllReduce, 4), 1.5);
    EXPECT_DOUBLE_EQ(busFactor(Operation::AllReduce, 1), 0);
    EXPECT_DOUBLE_EQ(busFactor(Operation::Broadcast, 4), 1);
    EXPECT_EQ(bandwidthBytes(Operation::AllGather, 10, 40), 40);
    EXPECT_EQ(bandwidthBytes(Operation::ReduceScatter, 40, 10), 40);
    EXPECT_EQ(bandwidthBytes(Operation::AllReduce, 40, 40), 40);
}

TEST(Percentile, IsTheNearestRank)
{
    EXPECT_EQ(percentile({5}, 0.99), 5);
    EXPECT_EQ(percentile({1, 2, 3, 4}, 0.5), 2);
    EXPECT_EQ(percentile({1, 2, 3, 4, 5}, 0.5), 3);
    EXPECT_EQ(percentile({1, 2, 3, 4, 5}, 0.99), 5);
}

} // namespace
} // namespace shardscope::analysis
