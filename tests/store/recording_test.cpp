// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/recording.h"

#include "recording_fixture.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace shardscope::store {
namespace {

using test::FixtureOptions;
using test::TemporaryFolder;
using test::writeFixtureRecording;
using testing::ElementsAre;
using testing::HasSubstr;

class RecordingTest : public testing::Test
{
protected:
    void write(const FixtureOptions &options = {})
    {
        const auto written = writeFixtureRecording(run(), options);
        ASSERT_TRUE(written) << written.error().text;
    }
    Recording open()
    {
        auto recording = Recording::open(run(), {.cacheFolder = m_folder.path() / "cache"});
        if (!recording)
            throw std::runtime_error(recording.error().text);
        return std::move(*recording);
    }
    std::filesystem::path run() const { return m_folder.path() / "run"; }
    std::filesystem::path rank(int64_t number) const
    {
        return run() / "attempt-1" / fmt::format("rank-{}.sqlite", number);
    }

    TemporaryFolder m_folder;
};

Index laneNamed(const Catalog &catalog, Index process, std::string_view name)
{
    for (size_t i = 0; i < catalog.lanes.size(); ++i) {
        if (catalog.lanes[i].process == process && catalog.lanes[i].name == name)
            return static_cast<Index>(i);
    }
    return kNone;
}

TEST_F(RecordingTest, TellsWhatIsInIt)
{
    write();
    const Recording recording = open();
    const Catalog &catalog = *recording.catalog();
    EXPECT_EQ(catalog.originNs, 1'700'000'000'000'000'000);
    EXPECT_EQ(catalog.source, "shardscope");
    EXPECT_TRUE(catalog.finished);
    EXPECT_TRUE(catalog.complete);
    EXPECT_TRUE(catalog.problems.empty());
    ASSERT_EQ(catalog.attempts.size(), 1u);
    EXPECT_EQ(catalog.attempts[0].worldSize, 2);
    EXPECT_EQ(catalog.attempts[0].ranks.size(), 2u);
    EXPECT_NE(catalog.attempts[0].supervisor, kNone);
    EXPECT_EQ(catalog.attempts[0].endReason, "done");
    const Index rank1 = catalog.rankProcess(1, 1);
    ASSERT_NE(rank1, kNone);
    const ProcessInfo &process = catalog.processes[static_cast<size_t>(rank1)];
    EXPECT_EQ(process.startedNs, 0);
    EXPECT_EQ(process.endedNs, 1'000'000 + 4 * 10'000'000 + 1'000'000);
    EXPECT_EQ(process.modelFlopsPerToken, 1e6);
    EXPECT_EQ(catalog.units.size(), 8u); // of both ranks
    EXPECT_EQ(catalog.devices.size(), 2u);
    EXPECT_EQ(std::count(catalog.names.begin(), catalog.names.end(), "attention"), 1); // shared by the ranks
}

TEST_F(RecordingTest, StepsHaveTheirSums)
{
    write();
    const Recording recording = open();
    const auto steps = recording.steps(recording.catalog()->rankProcess(1, 0), 1);
    ASSERT_TRUE(steps);
    ASSERT_EQ(steps->size(), 3u);
    const StepInfo &step = steps->front();
    EXPECT_EQ(step.number, 1);
    EXPECT_EQ(step.startNs, 1'000'000 + 10'000'000);
    EXPECT_EQ(step.endNs, 1'000'000 + 20'000'000);
    EXPECT_EQ(step.loss, 4.75);
    EXPECT_EQ(step.state, StepState::Ok);
    EXPECT_TRUE(step.spansKept);
    ASSERT_TRUE(step.sums);
    // Compute 4 × 400 + 4 × 800 + 500 of optimizer. Exposed: two gathers of 200, a reduce-scatter of 300, an
    // all-reduce of 100. Overlapped: 6 gathers of 200, 3 reduce-scatters of 300.
    EXPECT_EQ(step.sums->computeNs, 5'300'000);
    EXPECT_EQ(step.sums->optimizerNs, 500'000);
    EXPECT_EQ(step.sums->exposedAllGatherNs, 400'000);
    EXPECT_EQ(step.sums->exposedReduceScatterNs, 300'000);
    EXPECT_EQ(step.sums->exposedAllReduceNs, 100'000);
    EXPECT_EQ(step.sums->overlappedCommunicationNs, 2'100'000);
    EXPECT_EQ(step.sums->exposedCopyNs, 50'000);
    EXPECT_EQ(step.sums->idleHostNs, 300'000);
    EXPECT_EQ(step.sums->idleNs, 10'000'000 - 5'300'000 - 800'000 - 50'000);
}

TEST_F(RecordingTest, SpansOfALaneInARange)
{
    write();
    const Recording recording = open();
    const Index lane = laneNamed(*recording.catalog(), recording.catalog()->rankProcess(1, 0), "compute");
    const auto all = recording.spans(lane);
    ASSERT_TRUE(all);
    // A step: two spans a forward unit, one a backward unit, the optimizer.
    EXPECT_EQ(all->size(), 4u * (4 * 2 + 4 + 1));
    EXPECT_TRUE(std::is_sorted(all->startNs.begin(), all->startNs.end()));
    EXPECT_EQ(recording.catalog()->names[static_cast<size_t>(all->name[0])], "attention");
    EXPECT_EQ(all->category[0], SpanCategory::Compute);
    EXPECT_EQ(all->phase[0], static_cast<int8_t>(Phase::Forward));
    EXPECT_EQ(all->step[13], 1);
    EXPECT_EQ(recording.catalog()->units[static_cast<size_t>(all->unit[0])].name, "embedding");

    // The first attention runs from 1.5 to 1.7 ms: a range inside it has it, and nothing else.
    const auto inside = recording.spans(lane, 1'550'000, 1'600'000);
    ASSERT_TRUE(inside);
    EXPECT_THAT(inside->startNs, ElementsAre(1'500'000));
    const auto starting = recording.spansStarting(lane, 1'550'000, 1'800'000);
    ASSERT_TRUE(starting);
    EXPECT_THAT(starting->startNs, ElementsAre(1'700'000));
    const auto none = recording.spans(lane, -100, 0);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->size(), 0u);
}

TEST_F(RecordingTest, CollectivesAreJoinedAcrossRanks)
{
    FixtureOptions options;
    options.ranks = 3;
    write(options);
    const Recording recording = open();
    const auto calls = recording.collectives();
    ASSERT_TRUE(calls);
    EXPECT_EQ(calls->size(), 4u * (8 + 4 + 1)); // a step: 8 gathers, 4 reduce-scatters, an all-reduce
    const CollectiveCall &first = calls->front();
    EXPECT_EQ(first.operation, Operation::AllGather);
    EXPECT_EQ(first.unit, "embedding");
    EXPECT_EQ(first.step, 0);
    EXPECT_EQ(first.size, 3);
    EXPECT_EQ(first.inputBytes * 3, first.outputBytes);
    ASSERT_EQ(first.parts.size(), 3u);
    // Ranks enter 0, 10 and 20 µs late, and leave after 200.
    EXPECT_EQ(first.parts[0].waitNs, 20'000);
    EXPECT_EQ(first.parts[1].waitNs, 10'000);
    EXPECT_EQ(first.parts[2].waitNs, 0);
    EXPECT_EQ(first.transferNs(), 180'000);
    EXPECT_TRUE(first.operationsAgree);

    // Only what is enqueued in the range by some rank, but with all its parts.
    const auto some = recording.collectives(first.parts[2].enqueuedNs, first.parts[2].enqueuedNs + 1);
    ASSERT_TRUE(some);
    ASSERT_EQ(some->size(), 1u);
    EXPECT_EQ((*some)[0].parts.size(), 3u);
}

TEST_F(RecordingTest, AMissingRankIsNamedAndTheRestWorks)
{
    FixtureOptions options;
    options.ranks = 3;
    options.skipRanks = {1};
    write(options);
    const Recording recording = open();
    EXPECT_THAT(recording.catalog()->attempts[0].missingRanks, ElementsAre(1));
    EXPECT_FALSE(recording.catalog()->complete);
    const auto calls = recording.collectives();
    ASSERT_TRUE(calls);
    EXPECT_EQ(calls->front().parts.size(), 2u);
    EXPECT_FALSE(calls->front().lastStartNs()); // who knows when rank 1 came
}

TEST_F(RecordingTest, DifferentOperationsOnOneCallAreSeen)
{
    write();
    {
        SQLite::Database database(rank(1).string(), SQLite::OPEN_READWRITE);
        database.exec("UPDATE collective SET operation = 'all_reduce' WHERE sequence = 0");
    }
    const Recording recording = open();
    const auto calls = recording.collectives();
    ASSERT_TRUE(calls);
    EXPECT_FALSE(calls->front().operationsAgree);
    EXPECT_TRUE(calls->back().operationsAgree);
}

TEST_F(RecordingTest, MemoryCategoriesSumToWhatIsAllocated)
{
    write();
    const Recording recording = open();
    const auto memory = recording.memory(recording.catalog()->rankProcess(1, 1));
    ASSERT_TRUE(memory);
    ASSERT_EQ(memory->size(), 1u);
    const MemoryColumns &columns = memory->front();
    EXPECT_EQ(columns.place, "device");
    EXPECT_EQ(columns.size(), 4u * (1 + 4 + 4 + 1 + 1)); // start, a unit forward and backward, peak, end
    for (size_t i = 0; i < columns.size(); ++i) {
        int64_t sum = columns.roundingBytes[i];
        for (const auto &bytes : columns.categoryBytes)
            sum += bytes[i];
        EXPECT_EQ(sum, columns.allocatedBytes[i]);
        EXPECT_EQ(sum + columns.pendingFreeBytes[i], columns.activeBytes[i]);
    }
    EXPECT_EQ(std::count(columns.isStepPeak.begin(), columns.isStepPeak.end(), 1), 4);
}

TEST_F(RecordingTest, ThePeakByUnitAndCategory)
{
    const FixtureOptions options;
    write(options);
    const Recording recording = open();
    const auto peak = recording.memoryPeak(recording.catalog()->rankProcess(1, 0), 2);
    ASSERT_TRUE(peak);
    ASSERT_TRUE(*peak);
    EXPECT_EQ((*peak)->step, 2);
    EXPECT_EQ((*peak)->allocatedBytes, test::fixturePeakBytes(options));
    std::array<int64_t, kMemoryCategories> byCategory{};
    for (const auto &cell : (*peak)->cells)
        byCategory[static_cast<size_t>(cell.category)] += cell.bytes;
    EXPECT_EQ(byCategory, (*peak)->categoryBytes);
    const auto none = recording.memoryPeak(recording.catalog()->rankProcess(1, 0), 99);
    ASSERT_TRUE(none);
    EXPECT_FALSE(*none);
}

TEST_F(RecordingTest, ThePeakOfAStepIsFoundWhereTheHostRanAhead)
{
    std::filesystem::create_directories(run() / "attempt-1");
    auto writer = Writer::open(run() / "attempt-1" / "rank-0.sqlite");
    ASSERT_TRUE(writer) << writer.error().text;
    writer->put(ProcessRow{.rank = 0, .startedNs = 1});
    for (int64_t number = 1; number <= 3; ++number) {
        writer->put(StepRow{.stepId = number, .number = number, .startNs = number * 1000}); // of the device
        writer->add(MemoryRow{.memoryId = number,
                              .timeNs = number * 10, // of the host
                              .stepId = number,
                              .isStepPeak = true,
                              .allocatedBytes = number * 100});
        writer->add(MemoryPeakRow{.memoryId = number, .bytes = number * 100});
    }
    ASSERT_TRUE(writer->close());
    const Recording recording = open();
    const auto peak = recording.memoryPeak(recording.catalog()->rankProcess(1, 0), 2);
    ASSERT_TRUE(peak) << peak.error().text;
    ASSERT_TRUE(*peak);
    EXPECT_EQ((*peak)->allocatedBytes, 200);
    ASSERT_EQ((*peak)->cells.size(), 1u);
    EXPECT_EQ((*peak)->cells[0].bytes, 200);
    // A step's peak is looked up, not searched among all samples.
    SQLite::Database database(rank(0).string());
    SQLite::Statement plan(database,
                           "EXPLAIN QUERY PLAN SELECT * FROM memory WHERE process_id = 1 AND is_step_peak = 1 AND "
                           "step_id IN (SELECT step_id FROM step WHERE process_id = 1 AND number = 2)");
    ASSERT_TRUE(plan.executeStep());
    EXPECT_THAT(plan.getColumn(3).getString(), HasSubstr("memory_step_peak"));
}

TEST_F(RecordingTest, EventsAndMetrics)
{
    write();
    SQLite::Database(run() / "attempt-1" / "supervisor.sqlite", SQLite::OPEN_READWRITE)
        .exec(R"(UPDATE event SET detail_json = '{"asker":"a test","step":2}')");
    const Recording recording = open();
    const auto events = recording.events();
    ASSERT_TRUE(events);
    ASSERT_EQ(events->size(), 2u);
    EXPECT_EQ((*events)[0].text, "run started");
    EXPECT_EQ((*events)[0].step, 2) << "a supervisor's database has no steps";
    EXPECT_EQ((*events)[1].kind, EventKind::Checkpoint);
    EXPECT_EQ((*events)[1].step, 3);
    const auto metrics = recording.metrics(recording.catalog()->rankProcess(1, 0), 20'000'000);
    ASSERT_TRUE(metrics);
    ASSERT_EQ(metrics->size(), 2u);
    EXPECT_EQ((*metrics)[0].name, "host_rss_bytes");
    EXPECT_EQ((*metrics)[1].value, (std::vector<double>{250.5, 250.5, 250.5}));
}

TEST_F(RecordingTest, AKilledRankEndsTheAttempt)
{
    FixtureOptions options;
    options.killedRank = 1;
    write(options);
    const Recording recording = open();
    const Catalog &catalog = *recording.catalog();
    EXPECT_EQ(catalog.processes[static_cast<size_t>(catalog.rankProcess(1, 1))].signal, 9);
    EXPECT_THAT(catalog.attempts[0].endReason, HasSubstr("rank 1 was killed by signal 9"));
    EXPECT_TRUE(catalog.finished);
    EXPECT_FALSE(catalog.complete);
}

TEST_F(RecordingTest, SeveralAttemptsStandSideBySide)
{
    write();
    FixtureOptions second;
    second.attempt = 2;
    second.ranks = 1;
    second.firstStep = 4;
    write(second);
    const Recording recording = open();
    const Catalog &catalog = *recording.catalog();
    ASSERT_EQ(catalog.attempts.size(), 2u);
    EXPECT_EQ(catalog.attempts[1].worldSize, 1);
    const auto steps = recording.steps(catalog.rankProcess(2, 0));
    ASSERT_TRUE(steps);
    EXPECT_EQ(steps->front().number, 4);
    const auto calls = recording.collectives();
    ASSERT_TRUE(calls);
    EXPECT_EQ(calls->back().attempt, 2); // equal sequences of different attempts are different calls
    EXPECT_EQ(calls->back().parts.size(), 1u);
}

TEST_F(RecordingTest, OneFileOrOneAttemptOpenToo)
{
    write();
    const auto file = Recording::open(rank(0));
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_THAT(file->catalog()->attempts[0].missingRanks, ElementsAre(1));
    const auto attempt = Recording::open(run() / "attempt-1");
    ASSERT_TRUE(attempt);
    EXPECT_EQ(attempt->catalog()->attempts[0].ranks.size(), 2u);
}

TEST_F(RecordingTest, ANewerVersionIsRefusedByName)
{
    write();
    {
        SQLite::Database database(rank(1).string(), SQLite::OPEN_READWRITE);
        database.exec("PRAGMA user_version = 7");
    }
    const auto opened = Recording::open(run());
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().text, HasSubstr("rank-1.sqlite"));
    EXPECT_THAT(opened.error().text, HasSubstr("schema version 7"));
    EXPECT_THAT(opened.error().text, HasSubstr("up to version 1"));
}

TEST_F(RecordingTest, ADamagedRankIsAProblemAndNoFailure)
{
    write();
    std::ofstream(rank(1), std::ios::trunc) << "this is no database, and it is long enough to be looked at as one";
    const Recording recording = open();
    ASSERT_EQ(recording.catalog()->problems.size(), 1u);
    EXPECT_THAT(recording.catalog()->problems[0], HasSubstr("rank-1.sqlite is not a SQLite database"));
    EXPECT_THAT(recording.catalog()->attempts[0].missingRanks, ElementsAre(1));
    EXPECT_FALSE(recording.catalog()->complete);
}

TEST_F(RecordingTest, WhatIsNoRecordingSaysSo)
{
    const auto absent = Recording::open(run() / "nowhere");
    ASSERT_FALSE(absent);
    EXPECT_THAT(absent.error().text, HasSubstr("no recording at"));
    std::filesystem::create_directories(run());
    const auto empty = Recording::open(run());
    ASSERT_FALSE(empty);
    EXPECT_THAT(empty.error().text, HasSubstr("is no run"));
    SQLite::Database((run() / "other.sqlite").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec("CREATE TABLE t (x)");
    const auto foreign = Recording::open(run() / "other.sqlite");
    ASSERT_FALSE(foreign);
    EXPECT_THAT(foreign.error().text, HasSubstr("not a recording of Shardscope"));
}

TEST_F(RecordingTest, ARunWithoutDatabasesYetIsEmpty)
{
    std::filesystem::create_directories(run() / "attempt-1");
    Recording recording = open();
    EXPECT_TRUE(recording.catalog()->processes.empty());
    const auto early = recording.sql("SELECT 1");
    ASSERT_FALSE(early);
    EXPECT_THAT(early.error().text, HasSubstr("nothing has been recorded"));
    write();
    ASSERT_TRUE(recording.refresh());
    EXPECT_EQ(recording.catalog()->attempts[0].ranks.size(), 2u);
}

TEST_F(RecordingTest, OddCharactersSurvive)
{
    FixtureOptions options;
    options.namePrefix = "\"quoted\" 'single'; DROP TABLE span; -- \xE6\xBC\xA2 \xF0\x9F\x94\xA5\n\t";
    write(options);
    const Recording recording = open();
    const auto &names = recording.catalog()->names;
    EXPECT_EQ(std::count(names.begin(), names.end(), options.namePrefix + "attention"), 1);
    const auto rows = recording.sql("SELECT count(*) FROM span");
    ASSERT_TRUE(rows);
    EXPECT_GT(std::get<int64_t>(rows->rows[0][0]), 0);
}

TEST_F(RecordingTest, CancelledReadsSaySo)
{
    write();
    const Recording recording = open();
    CancelToken cancel;
    cancel.cancel();
    const auto spans = recording.spans(0, kBeginning, kEnd, cancel);
    ASSERT_FALSE(spans);
    EXPECT_EQ(spans.error().text, "Cancelled.");
    const auto rows = recording.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", 10, cancel);
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().text, "Cancelled.");
}

TEST_F(RecordingTest, UnknownIndicesAreErrors)
{
    write();
    const Recording recording = open();
    EXPECT_FALSE(recording.spans(kNone));
    EXPECT_FALSE(recording.spans(999));
    EXPECT_FALSE(recording.steps(kNone));
    EXPECT_FALSE(recording.memory(999));
}

} // namespace
} // namespace shardscope::store
