// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/observe/flight.h"
#include "profiler/collect/recorder.h"
#include "tests/support/plain_sql.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <future>
#include <sys/resource.h>
#include <thread>
#include <utility>

namespace shardscope::collect {
namespace {

using test::TemporaryFolder;

using observe::MemoryScope;
using observe::SpanInfo;
using observe::SpanScope;
using testing::ElementsAre;
using testing::HasSubstr;

/// An allocator of its own: a ledger and two knobs.
class FakeMemory final : public MemorySource
{
public:
    explicit FakeMemory(std::shared_ptr<CurrentMemoryTag> tag)
        : m_tag(std::move(tag))
    {
    }
    void allocate(int64_t bytes)
    {
        m_bytes += bytes;
        m_ledger.allocated(m_tag->get(), bytes);
        m_ledger.settle(m_bytes, realtimeNs());
    }
    void free(observe::MemoryTag tag, int64_t bytes)
    {
        m_bytes -= bytes;
        m_ledger.freed(tag, bytes);
        if (m_sink)
            m_sink({.address = 64, .bytes = bytes, .tag = tag, .allocatedNs = 1, .freedNs = 2});
    }

    MemoryPlace place() const override { return MemoryPlace::Host; }
    std::optional<MemoryReading> read() override
    {
        if (busy)
            return std::nullopt;
        return MemoryReading{.timeNs = realtimeNs(),
                             .categories = m_ledger.categories(),
                             .allocatedBytes = m_bytes,
                             .activeBytes = m_bytes,
                             .reservedBytes = m_bytes,
                             .differenceBytes = difference};
    }
    void beginStep() override { m_ledger.beginStep(m_bytes, realtimeNs()); }
    std::optional<MemoryPeak> peak() override
    {
        if (busy)
            return std::nullopt;
        auto peak = m_ledger.peak();
        return MemoryPeak{{.timeNs = peak.timeNs, .categories = peak.categories, .allocatedBytes = peak.allocatedBytes},
                          std::move(peak.units)};
    }
    void recordAllocations(std::function<void(const AllocationRecord &)> sink) override { m_sink = std::move(sink); }
    std::vector<AllocationRecord> liveAllocations() override
    {
        return {{.address = 128, .bytes = m_bytes, .allocatedNs = 3}};
    }

    int64_t difference = 0;
    bool busy = false; ///< another thread allocates without pause

private:
    std::shared_ptr<CurrentMemoryTag> m_tag;
    MemoryLedger m_ledger;
    int64_t m_bytes = 0;
    std::function<void(const AllocationRecord &)> m_sink;
};

class RecorderTest : public testing::Test
{
protected:
    RecorderOptions options(RecordLevel level = RecordLevel::Light)
    {
        RecorderOptions options;
        options.database = m_folder.path() / "rank-0.sqlite";
        options.flight = m_folder.path() / "rank-0.flight";
        options.level = level;
        options.attempt = 2;
        options.worldSize = 2;
        options.command = "shardscope-worker config.json";
        options.device = hostDevice();
        options.originNs = 12345;
        options.modelFlopsPerToken = 1.5e6;
        options.configurationJson = R"({"train":{}})";
        options.firstStep = 7;
        options.meta = {{"torch", "2.11.0"}};
        options.memoryTag = m_tag;
        options.memory = {m_memory};
        return options;
    }
    test::PlainSql read() { return test::PlainSql(m_folder.path() / "rank-0.sqlite"); }
    static void rest(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

    TemporaryFolder m_folder;
    std::shared_ptr<CurrentMemoryTag> m_tag = std::make_shared<CurrentMemoryTag>();
    std::shared_ptr<FakeMemory> m_memory = std::make_shared<FakeMemory>(m_tag);
};

std::vector<observe::UnitInfo> twoUnits()
{
    return {{.name = "embedding", .kind = UnitKind::Embedding, .parameters = 10},
            {.name = "block.0", .kind = UnitKind::Block, .ordinal = 1, .parameters = 20, .shardBytes = 40}};
}

TEST_F(RecorderTest, DescribesTheProcess)
{
    auto recorder = Recorder::open(options());
    ASSERT_TRUE(recorder) << recorder.error().text;
    (*recorder)->onUnits(twoUnits());
    EXPECT_EQ((*recorder)->onCommunicator({.uid = "abc", .backend = "gloo", .rankInIt = 1, .members = {0, 1}}), 0);
    (*recorder)->event(EventKind::Checkpoint, "written", R"({"path":"x"})", {});
    ASSERT_TRUE((*recorder)->close(3));

    test::PlainSql database = read();
    EXPECT_THAT(
        database.lines("SELECT attempt, rank, world_size, command, exit_code, ended_ns > started_ns FROM process"),
        ElementsAre("2|0|2|shardscope-worker config.json|3|1"));
    EXPECT_THAT(database.lines("SELECT value FROM meta WHERE key IN ('origin_ns', 'torch') ORDER BY key"),
                ElementsAre("12345", "2.11.0"));
    EXPECT_THAT(database.lines("SELECT name, kind, parent_unit_id, parameters, shard_bytes FROM unit ORDER BY unit_id"),
                ElementsAre("embedding|embedding|-|10|0", "block.0|block|-|20|40"));
    EXPECT_THAT(database.lines("SELECT uid, backend, size, rank_in, members_json FROM communicator"),
                ElementsAre("abc|gloo|2|1|[0,1]"));
    EXPECT_THAT(database.lines("SELECT first_step, origin, full_json FROM config"),
                ElementsAre(R"(7|start|{"train":{}})"));
    EXPECT_THAT(database.lines("SELECT kind, text, detail_json FROM event"),
                ElementsAre(R"(checkpoint|written|{"path":"x"})"));
    EXPECT_THAT(database.lines("SELECT kind, peak_flops, memory_bytes > 0 FROM device"), ElementsAre("cpu|-|1"));
    EXPECT_EQ(database.value("SELECT count(*) FROM clock"), 1);
    EXPECT_EQ(database.value("SELECT sum(dropped_records) FROM flush"), 0);
}

TEST_F(RecorderTest, WritesAStepWithItsSpansCollectivesAndSums)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.onUnits(twoUnits());
    recorder.onCommunicator({.uid = "abc", .backend = "gloo", .members = {0, 1}});

    recorder.stepBegan(7);
    int64_t collective = 0;
    {
        const SpanScope forward(recorder, {.name = "forward", .phase = Phase::Forward, .unit = 1});
        rest(20);
        collective = recorder.beginCollective({.sequence = 5,
                                               .operation = Operation::ReduceScatter,
                                               .unit = 1,
                                               .phase = Phase::Backward,
                                               .dtype = "fp32",
                                               .inputBytes = 80,
                                               .outputBytes = 40});
        recorder.collectiveEnqueued(collective);
        std::thread transfer([&] {
            rest(10); // a peer is late
            recorder.collectiveStarted(collective);
            rest(20);
            recorder.collectiveEnded(collective);
        });
        {
            const SpanScope wait(recorder, {.name = "wait",
                                            .category = SpanCategory::Idle,
                                            .phase = Phase::Backward,
                                            .unit = 1,
                                            .collective = collective});
            transfer.join();
        }
        const SpanScope inner(recorder, {.name = "attention", .phase = Phase::Forward, .unit = 1, .bytes = 9});
    }
    recorder.stepEnded({.loss = 2.25, .gradientNorm = 0.5, .learningRate = 1e-3, .tokens = 64});
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database = read();
    EXPECT_THAT(
        database.lines("SELECT name.text, span.category, phase, lane.kind, bytes FROM span JOIN lane USING (lane_id) "
                       "JOIN name USING (name_id) ORDER BY lane.kind, name.text"),
        ElementsAre("forward|compute|forward|phase|-", "wait|idle|backward|phase|-",
                    "reduce_scatter|communication|backward|stream|80", "attention|compute|forward|thread|9",
                    "forward|compute|forward|thread|-", "wait|idle|backward|thread|-"));
    EXPECT_EQ(database.value("SELECT count(*) FROM span WHERE step_id = 1 AND unit_id = 2"), 6);
    EXPECT_THAT(database.lines("SELECT sequence, operation, unit_id, step_id, phase, dtype, input_bytes, output_bytes, "
                               "enqueued_ns <= started_ns, ended_ns - started_ns >= 20000000 FROM collective"),
                ElementsAre("5|reduce_scatter|2|1|backward|fp32|80|40|1|1"));
    EXPECT_THAT(database.lines("SELECT number, loss, gradient_norm, tokens, state, level FROM step"),
                ElementsAre("7|2.25|0.5|64|ok|light"));
    // The wait for the late peer, the transfer that nothing hides, and the rest of it: what spans and collective say,
    // however long a busy machine took.
    const std::string spans = "(SELECT text, span.start_ns, duration_ns FROM span JOIN lane USING (lane_id) "
                              "JOIN name USING (name_id) WHERE lane.kind = 'thread')";
    EXPECT_THAT(database.lines("SELECT compute_ns BETWEEN 20000000 AND forward.duration_ns - wait.duration_ns, "
                               "exposed_reduce_scatter_ns BETWEEN ended_ns - max(started_ns, wait.start_ns) "
                               "AND ended_ns - started_ns, "
                               "idle_peer_ns BETWEEN max(started_ns - wait.start_ns, 0) "
                               "AND wait.duration_ns - (ended_ns - max(started_ns, wait.start_ns)), "
                               "compute_ns + exposed_communication_ns + exposed_copy_ns + idle_ns = "
                               "end_ns - step.start_ns FROM step, collective, " +
                               spans + " AS forward, " + spans +
                               " AS wait WHERE forward.text = 'forward' AND wait.text = 'wait'"),
                ElementsAre("1|1|1|1"))
        << testing::PrintToString(
               database.lines("SELECT compute_ns, exposed_reduce_scatter_ns, idle_peer_ns, idle_ns FROM step"));
    const StepFigures figures = recorder.figuresOf(7);
    EXPECT_EQ(figures.exposedCommunicationNs, database.value("SELECT exposed_communication_ns FROM step"));
    EXPECT_EQ(figures.wallNs, database.value("SELECT end_ns - start_ns FROM step"));

    const auto flight = observe::readFlight(m_folder.path() / "rank-0.flight");
    ASSERT_TRUE(flight);
    EXPECT_EQ(flight->records.at(0).unit, "block.0");
    EXPECT_EQ(flight->records.at(0).communicator, "abc");
    EXPECT_TRUE(flight->records.at(0).endedNs);
    EXPECT_EQ(flight->pending(), nullptr);
}

TEST_F(RecorderTest, KeepsMemoryByCategoryAndTheStepsPeakByUnit)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.onUnits(twoUnits());
    const observe::MemoryTag activations{MemoryCategory::Activations, 1};
    recorder.stepBegan(1);
    {
        const MemoryScope tag(recorder, {MemoryCategory::Gathered, 0});
        m_memory->allocate(100);
        const MemoryScope inner(recorder, activations);
        m_memory->allocate(50);
        recorder.sampleMemory();
        m_memory->free(activations, 50);
    }
    m_memory->allocate(20);
    recorder.stepEnded({});
    EXPECT_EQ(recorder.figuresOf(1).peakAllocatedBytes, 150);
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database = read();
    EXPECT_THAT(
        database.lines(
            "SELECT gathered_bytes, activations_bytes, other_bytes, allocated_bytes, place, device_id FROM memory "
            "WHERE NOT is_step_peak ORDER BY memory_id"),
        ElementsAre("0|0|0|0|host|-", "100|50|0|150|host|-", "100|0|20|120|host|-"));
    EXPECT_THAT(
        database.lines(
            "SELECT gathered_bytes, activations_bytes, allocated_bytes, step_id FROM memory WHERE is_step_peak"),
        ElementsAre("100|50|150|1"));
    EXPECT_THAT(
        database.lines(
            "SELECT unit.name, category, bytes FROM memory_peak LEFT JOIN unit USING (unit_id) ORDER BY unit_id"),
        ElementsAre("embedding|gathered|100", "block.0|activations|50"));
    EXPECT_EQ(database.value("SELECT peak_allocated_bytes FROM step"), 150);
    EXPECT_EQ(database.value("SELECT count(*) FROM event"), 0);
}

TEST_F(RecorderTest, KeepsMemoryThatItsHoldersTellOf)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.onUnits(twoUnits());
    recorder.stepBegan(1); // nothing is held yet: no row
    recorder.memoryHeld({MemoryPlace::Pinned, {}, 0, 4096});
    recorder.memoryHeld({MemoryPlace::Pinned, {MemoryCategory::Activations, 1}, 3000, 0});
    recorder.sampleMemory();
    recorder.memoryHeld({MemoryPlace::Pinned, {MemoryCategory::Activations, 1}, -3000, 0});
    recorder.memoryHeld({MemoryPlace::Pinned, {MemoryCategory::Optimizer, 0}, 500, 500});
    recorder.stepEnded({});
    EXPECT_EQ(recorder.losses().memory, 0);
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database = read();
    EXPECT_THAT(database.lines("SELECT activations_bytes, optimizer_bytes, allocated_bytes, reserved_bytes, device_id "
                               "FROM memory WHERE place = 'pinned' AND NOT is_step_peak ORDER BY memory_id"),
                ElementsAre("3000|0|3000|4096|-", "0|500|500|4596|-"));
    EXPECT_THAT(database.lines("SELECT activations_bytes, optimizer_bytes, allocated_bytes FROM memory "
                               "WHERE place = 'pinned' AND is_step_peak"),
                ElementsAre("3000|0|3000"));
    EXPECT_THAT(database.lines("SELECT unit.name, category, memory_peak.bytes FROM memory_peak JOIN memory USING "
                               "(memory_id) JOIN unit USING (unit_id) WHERE place = 'pinned'"),
                ElementsAre("block.0|activations|3000"));
    EXPECT_EQ(database.value("SELECT peak_allocated_bytes FROM step"), 0); // the rank's own memory
    EXPECT_EQ(database.value("SELECT count(*) FROM memory WHERE place = 'nvme'"), 0);
}

TEST_F(RecorderTest, SaysWhereTheMemoryDoesNotAddUp)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    m_memory->difference = -512;
    (*opened)->sampleMemory();
    ASSERT_TRUE((*opened)->close(0));
    const auto events = read().lines("SELECT kind, text FROM event");
    ASSERT_EQ(events.size(), 1u);
    EXPECT_THAT(events[0], HasSubstr("warning|"));
    EXPECT_THAT(events[0], HasSubstr("off by -512 bytes"));
}

TEST_F(RecorderTest, CountsWhatTheQueueCannotTake)
{
    RecorderOptions small = options();
    small.queueEvents = 64;
    auto opened = Recorder::open(std::move(small));
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    constexpr int64_t kSpans = 200'000;
    const int64_t beganNs = monotonicNs();
    for (int64_t i = 0; i < kSpans; ++i)
        recorder.endSpan(recorder.beginSpan({.name = "span"}));
    EXPECT_LT(monotonicNs() - beganNs, 10'000'000'000) << "a full queue made the thread wait";
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database = read();
    const int64_t written = database.value("SELECT count(*) FROM span JOIN lane USING (lane_id) WHERE kind = 'thread'");
    const int64_t dropped = database.value("SELECT sum(dropped_records) FROM flush");
    EXPECT_GT(written, 0);
    EXPECT_GT(dropped, 0);
    EXPECT_EQ(recorder.losses().queue, dropped);
    EXPECT_EQ(recorder.losses().database, 0);
    // Samples of memory may be among the drops, never among the spans.
    EXPECT_GE(written + dropped, kSpans);
    EXPECT_LE(written + dropped, kSpans + 400);
    EXPECT_THAT(database.lines("SELECT kind FROM event"), testing::Contains("recording"));
}

TEST_F(RecorderTest, CountsTheMemoryThatCouldNotBeRead)
{
    auto recorder = Recorder::open(options());
    ASSERT_TRUE(recorder) << recorder.error().text;
    m_memory->busy = true;
    (*recorder)->stepBegan(7);  // a sample
    (*recorder)->stepEnded({}); // another, and the step's peak
    m_memory->busy = false;
    ASSERT_TRUE((*recorder)->close(0));
    EXPECT_EQ((*recorder)->losses().memory, 3);
    EXPECT_EQ((*recorder)->losses().queue, 0);
    test::PlainSql database = read();
    EXPECT_EQ(database.value("SELECT sum(dropped_records) FROM flush"), 3);
    EXPECT_THAT(database.lines("SELECT text FROM event WHERE kind = 'recording'"),
                ElementsAre(HasSubstr("memory could not be read 3 times")));
}

TEST_F(RecorderTest, CommitsWhileTheRunGoesOn)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.stepBegan(1);
    recorder.endSpan(recorder.beginSpan({.name = "forward"}));
    recorder.stepEnded({.loss = 1.0});
    // All while it is open, however long a loaded machine takes.
    const auto comesToBe = [&](const std::string &query, int64_t atLeast) {
        for (int i = 0; i < 300; ++i) {
            if (read().value(query) >= atLeast)
                return true;
            rest(100);
        }
        return false;
    };
    EXPECT_TRUE(comesToBe("SELECT count(*) FROM step WHERE compute_ns IS NOT NULL", 1));
    EXPECT_TRUE(comesToBe("SELECT count(*) FROM flush", 3)) << "without anything that happens";
    EXPECT_TRUE(comesToBe("SELECT count(*) FROM metric JOIN name USING (name_id) WHERE text = 'host_rss_bytes' "
                          "AND value > 1000000",
                          1));
    ASSERT_TRUE(recorder.close(0));
}

TEST_F(RecorderTest, AtOffKeepsTheStepsAndTheFlight)
{
    auto opened = Recorder::open(options(RecordLevel::Off));
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.stepBegan(1);
    EXPECT_EQ(recorder.beginSpan({.name = "forward"}), 0);
    recorder.endSpan(0);
    recorder.collectiveEnqueued(recorder.beginCollective({}));
    m_memory->allocate(10);
    recorder.stepEnded({.loss = 4.0});
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database = read();
    EXPECT_THAT(database.lines("SELECT number, level, loss, compute_ns, idle_ns, peak_allocated_bytes FROM step"),
                ElementsAre("1|off|4.0|-|-|-"));
    for (const char *empty : {"span", "collective", "memory", "metric"})
        EXPECT_EQ(database.value(std::string("SELECT count(*) FROM ") + empty), 0) << empty;
    EXPECT_EQ(observe::readFlight(m_folder.path() / "rank-0.flight")->records.size(), 1u);
}

TEST_F(RecorderTest, AtFullKeepsAllocations)
{
    auto opened = Recorder::open(options(RecordLevel::Full));
    ASSERT_TRUE(opened) << opened.error().text;
    m_memory->allocate(30);
    m_memory->free({MemoryCategory::Other, 1}, 10);
    ASSERT_TRUE((*opened)->close(0));
    EXPECT_THAT(read().lines("SELECT address, bytes, category, unit_id, freed_ns FROM allocation ORDER BY address"),
                ElementsAre("64|10|other|2|2", "128|20|other|-|-"));
}

TEST_F(RecorderTest, StepsCarryTheConfigurationThatTheyWereUnder)
{
    auto recorder = Recorder::open(options()).value();
    recorder->stepBegan(7);
    recorder->stepEnded({});
    recorder->configurationChanged({.firstStep = 8,
                                    .changedJson = R"({"a":{"from":"1","to":"2"}})",
                                    .fullJson = R"({"a":2})",
                                    .origin = "user",
                                    .requestedNs = 99});
    recorder->event(EventKind::Toggle, "a: 1 → 2", {}, 8); // it comes into force with the next step
    recorder->event(EventKind::Checkpoint, "of the step before", {}, 7);
    recorder->stepBegan(8);
    recorder->stepEnded({});
    ASSERT_TRUE(recorder->close(0));
    test::PlainSql database = read();
    EXPECT_THAT(database.lines("SELECT config_id, process_id, first_step, changed_json, full_json, origin FROM config"),
                ElementsAre(R"(1|1|7|{}|{"train":{}}|start)", R"(2|1|8|{"a":{"from":"1","to":"2"}}|{"a":2}|user)"));
    EXPECT_THAT(database.lines("SELECT requested_ns FROM config WHERE config_id = 2"), ElementsAre("99"));
    EXPECT_THAT(database.lines("SELECT number, config_id FROM step"), ElementsAre("7|1", "8|2"));
    EXPECT_THAT(database.lines("SELECT kind, number FROM event JOIN step USING (step_id) ORDER BY event.rowid"),
                ElementsAre("toggle|8", "checkpoint|7"));
}

TEST_F(RecorderTest, TheLevelMayChangeBetweenTwoSteps)
{
    auto recorder = Recorder::open(options(RecordLevel::Off)).value();
    int64_t number = 7;
    for (const RecordLevel level : {RecordLevel::Off, RecordLevel::Full, RecordLevel::Light, RecordLevel::Off}) {
        recorder->configurationChanged({.firstStep = number, .level = level});
        recorder->stepBegan(number++);
        {
            const SpanScope span(*recorder, SpanInfo{"forward"});
            m_memory->allocate(10);
            m_memory->free({}, 10);
            rest(1);
        }
        recorder->stepEnded({});
    }
    ASSERT_TRUE(recorder->close(0));
    test::PlainSql database = read();
    EXPECT_THAT(database.lines("SELECT number, level, compute_ns > 0, count(span_id) > 0 FROM step LEFT JOIN span "
                               "USING (step_id) GROUP BY number ORDER BY number"),
                ElementsAre("7|off|-|0", "8|full|1|1", "9|light|1|1", "10|off|-|0"));
    EXPECT_THAT(database.lines("SELECT count(*) FROM allocation"), ElementsAre("1"));
    EXPECT_THAT(database.lines("SELECT count(*) FROM config"), ElementsAre("5"));
}

TEST_F(RecorderTest, ValuesThatComeLaterReachTheStep)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    (*opened)->stepBegan(1);
    (*opened)->stepEnded({});
    (*opened)->stepBegan(2);
    (*opened)->stepValues(1, {.loss = 7.5, .state = StepState::Inf});
    (*opened)->stepEnded({.loss = 7.0});
    ASSERT_TRUE((*opened)->close(0));
    EXPECT_THAT(read().lines("SELECT number, loss, state FROM step ORDER BY number"),
                ElementsAre("1|7.5|inf", "2|7.0|ok"));
}

TEST_F(RecorderTest, KeepsTheLossScaleOfEachStep)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    (*opened)->stepBegan(1);
    (*opened)->stepEnded({.loss = 7.0, .state = StepState::Skipped, .lossScale = 65536});
    (*opened)->stepBegan(2);
    (*opened)->stepEnded({});
    (*opened)->stepBegan(3);
    (*opened)->stepValues(2, {.loss = 6.0, .lossScale = 32768});
    (*opened)->stepEnded({.loss = 5.0});
    ASSERT_TRUE((*opened)->close(0));
    EXPECT_THAT(read().lines("SELECT step.number, step.state, cast(value AS INTEGER) FROM metric JOIN name USING "
                             "(name_id) JOIN step ON time_ns = end_ns WHERE text = 'loss_scale' ORDER BY number"),
                ElementsAre("1|skipped|65536", "2|ok|32768"));
}

TEST_F(RecorderTest, SaysWhatStandsInItsWay)
{
    RecorderOptions nowhere = options();
    nowhere.database = "/nowhere/rank-0.sqlite";
    const auto opened = Recorder::open(std::move(nowhere));
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().text, HasSubstr("/nowhere"));
}

/// While it lives no file of this process can grow, as on a disk that is full.
class NoRoom
{
public:
    NoRoom()
    {
        ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &m_before);
        const rlimit none{1, m_before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &none);
    }
    ~NoRoom()
    {
        ::setrlimit(RLIMIT_FSIZE, &m_before);
        ::signal(SIGXFSZ, SIG_DFL);
    }

private:
    rlimit m_before{};
};

TEST_F(RecorderTest, TellsOfARecordingThatCannotBeWritten)
{
    std::promise<std::string> told;
    RecorderOptions recorderOptions = options();
    recorderOptions.trouble = [&told, once = false](const std::string &text) mutable {
        if (!std::exchange(once, true))
            told.set_value(text);
    };
    auto opened = Recorder::open(std::move(recorderOptions));
    ASSERT_TRUE(opened) << opened.error().text;
    auto text = told.get_future();
    {
        const NoRoom full;
        for (int64_t step = 1; text.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready; ++step) {
            ASSERT_LT(step, 1200) << "nobody was told within a minute";
            (*opened)->stepBegan(step);
            (*opened)->stepEnded({});
        }
    }
    EXPECT_THAT(text.get(), HasSubstr("The recording can't be written; the training goes on."));
    (void)(*opened)->close(0);
}

TEST_F(RecorderTest, ClosingTwiceAndCallsAfterItDoNothing)
{
    auto opened = Recorder::open(options());
    ASSERT_TRUE(opened) << opened.error().text;
    ASSERT_TRUE((*opened)->close(0));
    EXPECT_TRUE((*opened)->close(1));
    (*opened)->stepBegan(1);
    (*opened)->endSpan((*opened)->beginSpan({.name = "late"}));
    (*opened)->stepEnded({});
    EXPECT_EQ(read().value("SELECT exit_code FROM process"), 0);
}

} // namespace
} // namespace shardscope::collect
