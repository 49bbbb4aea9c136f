// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/writer.h"

#include "profiler/store/recording.h"
#include "profiler/store/sqlite_error.h"
#include "profiler/store/step_retention.h"
#include "recording_fixture.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shardscope::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WriterTest : public testing::Test
{
protected:
    Writer open(const Retention &retention = {})
    {
        auto writer = Writer::open(path(), {1, retention});
        if (!writer)
            throw std::runtime_error(writer.error().text);
        return std::move(*writer);
    }
    int64_t integerOf(const std::string &sql)
    {
        SQLite::Database database(path().string());
        return database.execAndGet(sql).getInt64();
    }
    std::filesystem::path path() const { return m_folder.path() / "rank-0.sqlite"; }

    test::TemporaryFolder m_folder;
};

SpanRow spanAt(Writer &writer, int64_t startNs, int64_t id, std::optional<int64_t> durationNs = 10)
{
    return {.laneId = 1, .startNs = startNs, .spanId = id, .durationNs = durationNs, .nameId = writer.nameId("span")};
}

/// A finished step of 100 ns with one span of each kind in it.
void writeStep(Writer &writer, int64_t number)
{
    const int64_t startNs = number * 100;
    StepRow step{.stepId = number + 1, .number = number, .startNs = startNs};
    step.sums = StepSums{.wallNs = 100, .idleNs = 100, .idleOtherNs = 100};
    writer.put(step);
    step.endNs = startNs + 100;
    writer.put(step);
    writer.put(LaneRow{.laneId = 1, .name = "lane"});
    SpanRow span = spanAt(writer, startNs + 10, number + 1);
    span.stepId = step.stepId;
    writer.add(span);
    writer.add(KernelRow{.spanId = span.spanId, .laneId = 1, .startNs = span.startNs, .grid = {4, 2, 1}});
    writer.put(CollectiveRow{.collectiveId = number + 1, .stepId = step.stepId, .enqueuedNs = startNs + 20});
    writer.add(AllocationRow{.bytes = 8, .allocatedNs = startNs + 30, .freedNs = startNs + 40});
    writer.add(MemoryRow{.memoryId = 2 * number + 1, .timeNs = startNs + 50, .stepId = step.stepId});
    MemoryRow peak{.memoryId = 2 * number + 2, .timeNs = startNs + 60, .stepId = step.stepId, .isStepPeak = true};
    peak.allocatedBytes = number == 3 ? 1000 : 500; // the highest peak is step 3's
    writer.add(peak);
    writer.add(MemoryPeakRow{.memoryId = peak.memoryId, .bytes = peak.allocatedBytes});
}

TEST_F(WriterTest, ACleanEndLeavesOneFile)
{
    Writer writer = open();
    writer.put(ProcessRow{.rank = 0});
    EXPECT_TRUE(writer.flush());
    EXPECT_TRUE(std::filesystem::exists(path().string() + "-wal"));
    ASSERT_TRUE(writer.close());
    EXPECT_FALSE(std::filesystem::exists(path().string() + "-wal"));
    EXPECT_FALSE(std::filesystem::exists(path().string() + "-shm"));
    SQLite::Database database(path().string());
    EXPECT_EQ(database.execAndGet("PRAGMA journal_mode").getString(), std::string("delete"));
    EXPECT_EQ(database.execAndGet("PRAGMA page_size").getInt(), 16384);
    EXPECT_EQ(database.execAndGet("PRAGMA user_version").getInt(), kSchemaVersion);
    EXPECT_EQ(database.execAndGet("PRAGMA application_id").getInt(), kApplicationId);
    EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), std::string("ok"));
}

TEST_F(WriterTest, EveryCommitHasAFlushRow)
{
    Writer writer = open();
    writer.add(spanAt(writer, 500, 1));
    writer.add(spanAt(writer, 300, 2, 1000));
    writer.put(CollectiveRow{.collectiveId = 1, .enqueuedNs = 200, .endedNs = 250});
    ASSERT_TRUE(writer.flush(5));
    ASSERT_TRUE(writer.flush());
    EXPECT_EQ(writer.spansWritten(), 2);
    EXPECT_EQ(writer.recordsDropped(), 5);
    ASSERT_TRUE(writer.close());
    EXPECT_EQ(integerOf("SELECT count(*) FROM flush"), 3);
    EXPECT_EQ(integerOf("SELECT first_start_ns FROM flush WHERE flush_id = 1"), 200);
    EXPECT_EQ(integerOf("SELECT last_end_ns FROM flush WHERE flush_id = 1"), 1300);
    EXPECT_EQ(integerOf("SELECT spans FROM flush WHERE flush_id = 1"), 2);
    EXPECT_EQ(integerOf("SELECT dropped_records FROM flush WHERE flush_id = 1"), 5);
    EXPECT_EQ(integerOf("SELECT first_start_ns IS NULL FROM flush WHERE flush_id = 2"), 1);
    EXPECT_EQ(integerOf("SELECT sum(dropped_records) FROM flush"), 5);
}

TEST_F(WriterTest, AnOpenSpanIsReplacedByItsEnd)
{
    Writer writer = open();
    writer.add(spanAt(writer, 500, 1, std::nullopt));
    ASSERT_TRUE(writer.flush());
    EXPECT_EQ(integerOf("SELECT duration_ns IS NULL FROM span"), 1);
    writer.add(spanAt(writer, 500, 1, 70));
    ASSERT_TRUE(writer.close());
    EXPECT_EQ(integerOf("SELECT count(*) FROM span"), 1);
    EXPECT_EQ(integerOf("SELECT duration_ns FROM span"), 70);
}

TEST_F(WriterTest, SpansMayShareLaneAndStart)
{
    Writer writer = open();
    writer.add(spanAt(writer, 500, 1));
    writer.add(spanAt(writer, 500, 2));
    ASSERT_TRUE(writer.close());
    EXPECT_EQ(integerOf("SELECT count(*) FROM span"), 2);
}

TEST_F(WriterTest, NamesAreInternedAcrossOpenings)
{
    int64_t id = 0;
    {
        Writer writer = open();
        id = writer.nameId("forward");
        EXPECT_EQ(writer.nameId("forward"), id);
        EXPECT_NE(writer.nameId("backward"), id);
        StepRow step{.stepId = 41};
        writer.put(step);
    }
    Writer again = open();
    EXPECT_EQ(again.nameId("forward"), id);
    EXPECT_EQ(again.nextId("step"), 42);
    EXPECT_EQ(again.nextId("unit"), 1);
    EXPECT_FALSE(again.nextId("nonsense"));
}

TEST_F(WriterTest, NotMeasuredIsNull)
{
    Writer writer = open();
    StepRow step{.stepId = 1};
    step.loss = std::nan("");
    step.gradientNorm = 0.0;
    writer.put(step);
    writer.add(MetricRow{.nameId = writer.nameId("power_watts"), .value = std::nan("")});
    ASSERT_TRUE(writer.close());
    EXPECT_EQ(integerOf("SELECT loss IS NULL AND wall_ns IS NULL AND state IS NULL FROM step"), 1);
    EXPECT_EQ(integerOf("SELECT gradient_norm = 0.0 FROM step"), 1);
    EXPECT_EQ(integerOf("SELECT count(*) FROM metric"), 0);
}

TEST_F(WriterTest, OldStepsLoseTheirSpansAndKeepTheirSums)
{
    Writer writer = open({.keepSteps = 3, .keepFirst = 2});
    for (int64_t number = 0; number < 12; ++number) {
        writeStep(writer, number);
        ASSERT_TRUE(writer.flush());
    }
    ASSERT_TRUE(writer.close());
    // The first two, three that are followed by a newer one, and the last: 0 1 | 8 9 10 | 11.
    for (const char *table : {"span", "kernel", "collective", "allocation"})
        EXPECT_EQ(integerOf(fmt::format("SELECT count(*) FROM {}", table)), 6) << table;
    EXPECT_EQ(integerOf("SELECT min(step_id) FROM span WHERE step_id > 2"), 9);
    EXPECT_EQ(integerOf("SELECT count(*) FROM step"), 12);
    EXPECT_EQ(integerOf("SELECT count(*) FROM step WHERE wall_ns = 100"), 12);
    EXPECT_EQ(integerOf("SELECT count(*) FROM step WHERE spans_kept = 1"), 6);
    EXPECT_EQ(integerOf("SELECT sum(number) FROM step WHERE spans_kept = 1"), 0 + 1 + 8 + 9 + 10 + 11);
    EXPECT_EQ(integerOf("SELECT count(*) FROM memory WHERE is_step_peak = 1"), 12);
    EXPECT_EQ(integerOf("SELECT count(*) FROM memory WHERE is_step_peak = 0"), 6);
    // Units at the peak: of the steps kept, and of the highest peak (step 3).
    EXPECT_EQ(integerOf("SELECT count(*) FROM memory_peak"), 7);
    EXPECT_EQ(integerOf("SELECT max(bytes) FROM memory_peak"), 1000);
}

/// On CUDA the host begins a step long before the device does: up to three steps here.
TEST_F(WriterTest, AKeptStepKeepsWhatItsHostDidAheadOfTheDevice)
{
    constexpr int64_t kSteps = 12;
    constexpr int64_t kThread = 1, kStream = 2;
    Writer writer = open({.keepSteps = 3, .keepFirst = 2});
    writer.put(LaneRow{.laneId = kThread, .kind = LaneKind::Thread, .name = "train thread"});
    writer.put(LaneRow{.laneId = kStream, .kind = LaneKind::Stream, .name = "compute"});
    for (int64_t id = 1; id <= kSteps; ++id) {
        const int64_t hostNs = id * 100;
        const int64_t deviceNs = hostNs + 50 + 20 * id;
        StepRow step{.stepId = id, .number = id, .startNs = hostNs};
        writer.put(step);
        const auto span = [&](int64_t lane, int64_t startNs, int64_t spanId) {
            SpanRow row = spanAt(writer, startNs, spanId);
            row.laneId = lane;
            row.stepId = id;
            writer.add(row);
        };
        span(kThread, hostNs + 10, 2 * id);
        span(kStream, deviceNs + 10, 2 * id + 1);
        writer.add(KernelRow{.spanId = 2 * id + 1, .laneId = kStream, .startNs = deviceNs + 10});
        writer.put(CollectiveRow{.collectiveId = id, .stepId = id, .enqueuedNs = hostNs + 20});
        writer.add(AllocationRow{.bytes = id, .allocatedNs = hostNs + 30, .freedNs = hostNs + 40});
        writer.add(MemoryRow{.memoryId = 2 * id, .timeNs = hostNs + 50, .stepId = id});
        // The peak is what lived when the step began: it is timed a little before the step itself.
        writer.add(MemoryRow{
            .memoryId = 2 * id + 1, .timeNs = hostNs - 1, .stepId = id, .isStepPeak = true, .allocatedBytes = 500});
        writer.add(MemoryPeakRow{.memoryId = 2 * id + 1, .bytes = 500});
        ASSERT_TRUE(writer.flush());
        // The device's times come a flush later.
        step.startNs = deviceNs;
        step.endNs = deviceNs + 100;
        writer.put(step);
    }
    ASSERT_TRUE(writer.close());
    for (int64_t id = 1; id <= kSteps; ++id) {
        const bool kept = id <= 2 || id >= kSteps - 3;
        const auto count = [&](const std::string &what) { return integerOf("SELECT count(*) FROM " + what); };
        const std::string ofStep = fmt::format(" WHERE step_id = {}", id);
        EXPECT_EQ(integerOf("SELECT spans_kept FROM step" + ofStep), kept) << "step " << id;
        EXPECT_EQ(count("span" + ofStep + " AND lane_id = 1"), kept) << "step " << id;
        EXPECT_EQ(count("span" + ofStep + " AND lane_id = 2"), kept) << "step " << id;
        EXPECT_EQ(count(fmt::format("kernel WHERE span_id = {}", 2 * id + 1)), kept) << "step " << id;
        EXPECT_EQ(count("collective" + ofStep), kept) << "step " << id;
        EXPECT_EQ(count(fmt::format("allocation WHERE bytes = {}", id)), kept) << "step " << id;
        EXPECT_EQ(count("memory" + ofStep + " AND is_step_peak = 0"), kept) << "step " << id;
        EXPECT_EQ(count("memory_peak JOIN memory USING (memory_id)" + ofStep), kept || id == 1) << "step " << id;
    }
}

TEST_F(WriterTest, AStepPutAgainLateStaysWithoutSpans)
{
    Writer writer = open({.keepSteps = 1, .keepFirst = 0});
    for (int64_t number = 0; number < 4; ++number) {
        writeStep(writer, number);
        ASSERT_TRUE(writer.flush());
    }
    StepRow late{.stepId = 1, .number = 0};
    late.loss = 2.5;
    writer.put(late);
    ASSERT_TRUE(writer.close());
    EXPECT_EQ(integerOf("SELECT spans_kept FROM step WHERE step_id = 1"), 0);
}

TEST_F(WriterTest, TheSizeLimitKeepsFewerSteps)
{
    Writer writer = open({.keepSteps = 0, .keepFirst = 0, .maxBytes = 1 << 20});
    for (int64_t number = 0; number < 100; ++number) {
        writeStep(writer, number);
        for (int64_t i = 0; i < 1000; ++i)
            writer.add(spanAt(writer, number * 100 + 11, 1000 * (number + 1) + i));
        ASSERT_TRUE(writer.flush());
    }
    ASSERT_TRUE(writer.close());
    // 100,000 spans would be some 4 MB.
    EXPECT_LT(std::filesystem::file_size(path()), 2u << 20);
    EXPECT_GT(integerOf("SELECT count(*) FROM span"), 5000);
    EXPECT_EQ(integerOf("SELECT count(*) FROM span WHERE start_ns >= 9900"), 1001); // the newest is whole
    EXPECT_EQ(integerOf("SELECT count(*) FROM event WHERE kind = 'recording' AND text LIKE '%record.max_gib%'"), 1);
    EXPECT_EQ(integerOf("SELECT count(*) FROM step"), 100);
}

TEST_F(WriterTest, WithOneStepLeftTheFirstStepsGoAndThenOldMetrics)
{
    constexpr int64_t kMinuteNs = 60'000'000'000;
    Writer writer = open({.keepSteps = 1, .keepFirst = 5, .maxBytes = 1 << 20});
    for (int64_t number = 0; number < 10; ++number) {
        writeStep(writer, number);
        for (int64_t i = 0; i < 9000; ++i)
            writer.add(spanAt(writer, number * 100 + 11, 10'000 * (number + 1) + i));
        ASSERT_TRUE(writer.flush());
    }
    EXPECT_EQ(integerOf("SELECT sum(spans_kept) FROM step WHERE number < 8"), 0);
    EXPECT_EQ(integerOf("SELECT count(*) FROM span WHERE start_ns < 800"), 0);
    // Ten hours of metrics: some 4 MB.
    const int64_t nameId = writer.nameId("power_watts");
    for (int64_t minute = 0; minute < 600; ++minute) {
        for (int64_t i = 0; i < 100; ++i)
            writer.add(MetricRow{.timeNs = minute * kMinuteNs + i, .nameId = nameId, .value = 1});
        ASSERT_TRUE(writer.flush());
    }
    EXPECT_LT(integerOf("SELECT count(*) FROM metric"), 30'000);
    EXPECT_EQ(integerOf(fmt::format("SELECT count(*) FROM metric WHERE time_ns > {}", 540 * kMinuteNs)), 5999);
    // And then nothing is left to be given up.
    for (int64_t i = 0; i < 60'000; ++i)
        writer.add(MetricRow{.timeNs = 600 * kMinuteNs + i, .nameId = nameId, .value = 1});
    ASSERT_TRUE(writer.flush());
    for (int64_t i = 0; i < 40; ++i)
        ASSERT_TRUE(writer.flush());
    ASSERT_TRUE(writer.close());
    EXPECT_GE(integerOf("SELECT count(*) FROM metric"), 60'000);
    const auto said = [&](const char *what) {
        return integerOf(fmt::format("SELECT count(*) FROM event WHERE kind = 'recording' AND text LIKE '%{}%'", what));
    };
    EXPECT_EQ(said("record.keep_first"), 1);
    EXPECT_EQ(said("oldest metrics"), 1);
    EXPECT_EQ(said("grows on"), 1);
}

TEST_F(WriterTest, ForeignFilesAreNotTouched)
{
    SQLite::Database(path().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE mine (x)");
    auto foreign = Writer::open(path());
    ASSERT_FALSE(foreign);
    EXPECT_THAT(foreign.error().text, HasSubstr("not a recording of Shardscope"));
    std::ofstream(m_folder.path() / "text") << "a text file that is no database at all, but long enough";
    auto text = Writer::open(m_folder.path() / "text");
    ASSERT_FALSE(text);
    EXPECT_THAT(text.error().text, HasSubstr("is not a SQLite database"));
    auto nowhere = Writer::open(m_folder.path() / "absent" / "rank-0.sqlite");
    ASSERT_FALSE(nowhere);
    EXPECT_THAT(nowhere.error().text, HasSubstr("Check that its folder exists"));
}

TEST_F(WriterTest, AnotherSchemaVersionIsRefused)
{
    {
        Writer writer = open();
    }
    SQLite::Database(path().string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 9");
    auto newer = Writer::open(path());
    ASSERT_FALSE(newer);
    EXPECT_THAT(newer.error().text, HasSubstr("schema version 9"));
}

/// A file size limit is as a full disk to SQLite, but for the code: writing fails in the middle of a commit.
TEST_F(WriterTest, AFailedCommitIsReportedAndCounted)
{
    Writer writer = open();
    writer.put(LaneRow{.laneId = 1, .name = "lane"});
    writer.add(spanAt(writer, 1, 1));
    ASSERT_TRUE(writer.flush());

    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    auto *const handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit tight{256 * 1024, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    for (int64_t i = 0; i < 50'000; ++i)
        writer.add(spanAt(writer, 100 + i, 100 + i));
    writer.add(EventRow{.text = "must not get lost"});
    const auto failed = writer.flush(3);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);

    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().text, HasSubstr("rank-0.sqlite"));
    writer.add(spanAt(writer, 900'000, 900'000));
    ASSERT_TRUE(writer.close());
    EXPECT_EQ(integerOf("SELECT count(*) FROM span"), 2);
    EXPECT_EQ(integerOf("SELECT sum(dropped_records) FROM flush"), 50'003);
    EXPECT_EQ(integerOf("SELECT count(*) FROM event WHERE text = 'must not get lost'"), 1);
}

TEST(SqliteError, AFullDiskSaysSo)
{
    const std::string text =
        explain("/data/run/rank-0.sqlite", SQLite::Exception("database or disk is full", SQLITE_FULL));
    EXPECT_THAT(text, HasSubstr("The disk is full"));
    EXPECT_THAT(text, HasSubstr("/data/run/rank-0.sqlite"));
}

/// A child writes and commits until it is killed in the middle of something.
TEST_F(WriterTest, AKilledWriterLosesNoCommit)
{
    int commits[2];
    ASSERT_EQ(pipe(commits), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto writer = Writer::open(path());
        for (int64_t number = 0; writer; ++number) {
            writeStep(*writer, number);
            for (int64_t i = 0; i < 2000; ++i)
                writer->add(spanAt(*writer, number * 100 + 11, 10'000 * (number + 1) + i));
            if (!writer->flush() || write(commits[1], "c", 1) != 1)
                break;
        }
        _exit(1);
    }
    close(commits[1]);
    char heard = 0;
    for (int commit = 0; commit < 10; ++commit)
        ASSERT_EQ(read(commits[0], &heard, 1), 1);
    usleep(1000);
    kill(child, SIGKILL);
    close(commits[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));

    auto recording = Recording::open(path(), {.cacheFolder = m_folder.path() / "cache"});
    ASSERT_TRUE(recording) << recording.error().text;
    const auto rows =
        recording->sql("SELECT (SELECT count(*) FROM span), (SELECT sum(spans) FROM flush), (SELECT count(*) "
                       "FROM step), (SELECT count(*) FROM flush)");
    ASSERT_TRUE(rows) << rows.error().text;
    const auto value = [&](size_t column) { return std::get<int64_t>(rows->rows[0][column]); };
    EXPECT_GE(value(3), 10);
    EXPECT_EQ(value(0), value(1)); // every commit is there whole
    EXPECT_EQ(value(2), value(3)); // a step a commit
}

TEST(StepRetention, SaysADeletionAgainUntilItIsDone)
{
    StepRetention retention({.keepSteps = 1, .keepFirst = 1, .maxBytes = 0});
    for (int64_t id = 1; id <= 4; ++id)
        retention.stepBegan(id, id * 100);
    const auto first = retention.due();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->firstStepId, 2);
    EXPECT_EQ(first->lastStepId, 2);
    EXPECT_EQ(first->from.deviceNs, 200);
    EXPECT_EQ(first->to.deviceNs, 300);
    retention.stepBegan(5, 500);
    const auto again = retention.due();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->firstStepId, 2);
    EXPECT_EQ(again->lastStepId, 3);
    EXPECT_TRUE(retention.spansKept(2));
    retention.done(*again);
    EXPECT_FALSE(retention.due());
    EXPECT_TRUE(retention.spansKept(1));
    EXPECT_FALSE(retention.spansKept(2));
    EXPECT_FALSE(retention.spansKept(3));
    EXPECT_TRUE(retention.spansKept(4));
}

TEST(StepRetention, TakesABetterStartWhenItComes)
{
    StepRetention retention({.keepSteps = 1, .keepFirst = 1, .maxBytes = 0});
    retention.stepBegan(1, 100);
    retention.stepBegan(2, 200);
    retention.stepBegan(2, 230); // the device had still to do with step 1
    retention.stepBegan(3, 300);
    retention.stepBegan(3, 340);
    retention.stepBegan(4, 400);
    const auto deletion = retention.due();
    ASSERT_TRUE(deletion);
    EXPECT_EQ(deletion->from.deviceNs, 230);
    EXPECT_EQ(deletion->to.deviceNs, 340);
    // What the host did in them lies where the host was.
    EXPECT_EQ(deletion->from.hostNs, 200);
    EXPECT_EQ(deletion->to.hostNs, 300);
    EXPECT_EQ(deletion->oldestStepId, 2);
}

} // namespace
} // namespace shardscope::store
