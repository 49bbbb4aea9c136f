// SPDX-License-Identifier: Apache-2.0
// Device records by hand: what CUPTI would tell, joined to steps, units and collectives.
#include "core/base/clock.h"
#include "core/observe/flight.h"
#include "profiler/collect/collectives.h"
#include "profiler/collect/device_join.h"
#include "profiler/collect/lanes.h"
#include "profiler/collect/recorder.h"
#include "tests/support/plain_sql.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <thread>

namespace shardscope::collect {
namespace {

using test::TemporaryFolder;

using testing::ElementsAre;
using testing::HasSubstr;

/// Remembers what was pushed, as CUPTI does for each thread, and hands out the records that a test makes.
class FakeActivity final : public ActivitySource
{
public:
    struct State
    {
        std::mutex mutex;
        ActivityBatch batch;
        std::vector<uint64_t> spans;
        std::vector<uint64_t> collectives;
        std::vector<RecordLevel> levels; ///< that it was set to
        uint32_t calls = 0;
        bool stopped = false;
        bool outOfMemory = false; ///< the next take() fails

        /// A launch now: its correlations and the call itself. Returns the correlation id.
        uint32_t launch()
        {
            const std::lock_guard lock(mutex);
            const uint32_t id = ++calls;
            const auto correlation = [&](ContextKind kind, uint64_t value) {
                ActivityRecord record;
                record.kind = ActivityKind::Correlation;
                record.correlation = id;
                record.context = kind;
                record.contextValue = value;
                batch.records.push_back(record);
            };
            if (!spans.empty())
                correlation(ContextKind::Span, spans.back());
            if (!collectives.empty())
                correlation(ContextKind::Collective, collectives.back());
            ActivityRecord call;
            call.kind = ActivityKind::Call;
            call.correlation = id;
            call.name = "cudaLaunchKernel";
            call.threadId = 99;
            call.launches = true;
            call.startNs = realtimeNs();
            call.endNs = call.startNs + 500;
            batch.records.push_back(call);
            return id;
        }
        void kernel(uint32_t correlation, std::string_view name, int64_t startNs, int64_t endNs, uint32_t stream = 7,
                    ActivityKind kind = ActivityKind::Kernel)
        {
            const std::lock_guard lock(mutex);
            ActivityRecord record;
            record.kind = kind;
            record.correlation = correlation;
            record.name = name;
            record.startNs = startNs;
            record.endNs = endNs;
            record.contextId = 1;
            record.streamId = stream;
            record.grid = {4, 2, 1};
            record.block = {128, 1, 1};
            record.registers = 40;
            batch.records.push_back(record);
        }
    };
    explicit FakeActivity(std::shared_ptr<State> state)
        : m_state(std::move(state))
    {
    }
    Result<> start(RecordLevel) override { return {}; }
    void push(ContextKind kind, uint64_t value) override
    {
        const std::lock_guard lock(m_state->mutex);
        stack(kind).push_back(value);
    }
    void pop(ContextKind kind) override
    {
        const std::lock_guard lock(m_state->mutex);
        stack(kind).pop_back();
    }
    /// A stream is its number.
    std::optional<uint32_t> streamId(const void *stream) override
    {
        return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream));
    }
    Result<> setLevel(RecordLevel level) override
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->levels.push_back(level);
        return {};
    }
    ActivityBatch take() override
    {
        const std::lock_guard lock(m_state->mutex);
        if (std::exchange(m_state->outOfMemory, false))
            throw std::bad_alloc();
        return std::exchange(m_state->batch, {});
    }
    ActivityBatch stop() override
    {
        m_state->stopped = true;
        return take();
    }

private:
    std::vector<uint64_t> &stack(ContextKind kind)
    {
        return kind == ContextKind::Span ? m_state->spans : m_state->collectives;
    }
    std::shared_ptr<State> m_state;
};

TEST(SpanContext, FitsInSixtyFourBits)
{
    for (const SpanContext &context :
         {SpanContext{}, SpanContext{0, 0, Phase::Input}, SpanContext{123'456'789, 700'000, Phase::Validate},
          SpanContext{123'456'789, 700'000, Phase::Backward, true}, SpanContext{kNoStep, observe::kNoUnit, {}, true}})
        EXPECT_EQ(unpackContext(packContext(context)), context);
}

class DeviceTest : public testing::Test
{
protected:
    void open(RecordLevel level)
    {
        RecorderOptions options;
        options.database = m_folder.path() / "rank-0.sqlite";
        options.flight = m_folder.path() / "rank-0.flight";
        options.level = level;
        options.device = {.kind = DeviceKind::Cuda, .name = "NVIDIA H200", .pci = "00000000:FE:1F.0"};
        options.compute = Precision::Bf16;
        options.activity = std::make_unique<FakeActivity>(m_state);
        auto opened = Recorder::open(std::move(options));
        ASSERT_TRUE(opened) << opened.error().text;
        m_recorder = std::move(*opened);
        m_recorder->onUnits(std::vector<observe::UnitInfo>{{.name = "embedding"}, {.name = "block.0"}});
        m_recorder->onCommunicator({.uid = "abc", .backend = "nccl", .members = {0, 1}});
    }
    test::PlainSql close()
    {
        EXPECT_TRUE(m_recorder->close(0));
        return test::PlainSql(m_folder.path() / "rank-0.sqlite");
    }

    TemporaryFolder m_folder;
    std::shared_ptr<FakeActivity::State> m_state = std::make_shared<FakeActivity::State>();
    std::unique_ptr<Recorder> m_recorder;
};

TEST_F(DeviceTest, KernelsGetTheStepUnitPhaseAndCollectiveOfTheirCall)
{
    open(RecordLevel::Light);
    m_recorder->stepBegan(1);
    const int64_t t = realtimeNs();
    int64_t collective = 0;
    {
        const observe::SpanScope forward(*m_recorder, {.name = "forward", .phase = Phase::Forward, .unit = 1});
        collective = m_recorder->beginCollective({.operation = Operation::AllGather,
                                                  .unit = 0,
                                                  .phase = Phase::Backward,
                                                  .dtype = "bf16",
                                                  .inputBytes = 10,
                                                  .outputBytes = 20});
        const uint32_t gather = m_state->launch();
        const uint32_t cast = m_state->launch();
        m_recorder->collectiveEnqueued(collective);
        const uint32_t product = m_state->launch();
        m_state->kernel(product, "gemm", t + 1000, t + 3000);
        m_state->kernel(gather, "ncclDevKernel_AllGather", t + 2000, t + 5000, 20);
        m_state->kernel(cast, "cast", t + 500, t + 900);
    }
    const uint32_t outside = m_state->launch();
    m_state->kernel(outside, "stray", t + 6000, t + 6500);
    m_recorder->stepEnded({});
    test::PlainSql database = close();

    EXPECT_THAT(database.lines(
                    "SELECT name.text, category, phase, step_id, unit_id, collective_id, lane.name FROM span "
                    "JOIN lane USING (lane_id) JOIN name USING (name_id) WHERE lane.kind = 'stream' ORDER BY start_ns"),
                ElementsAre("cast|compute|forward|1|2|1|compute", "gemm|compute|forward|1|2|-|compute",
                            "ncclDevKernel_AllGather|communication|backward|1|1|1|communication",
                            "stray|compute|-|-|-|-|compute"));
    // The cast in front of the collective is none of it.
    EXPECT_EQ(database.value("SELECT started_ns FROM collective"), t + 2000);
    EXPECT_EQ(database.value("SELECT ended_ns FROM collective"), t + 5000);
    EXPECT_EQ(database.value("SELECT count(*) FROM span JOIN lane USING (lane_id) WHERE lane.kind = 'thread' "
                             "AND category = 'host'"),
              1)
        << "a host span on CUDA computes nothing";
    EXPECT_EQ(database.value("SELECT CAST(peak_flops AS INTEGER) FROM device"), 989'400'000'000'000);
    const auto flight = observe::readFlight(m_folder.path() / "rank-0.flight");
    EXPECT_EQ(flight->records.at(0).startedNs, t + 2000);
    EXPECT_EQ(flight->records.at(0).endedNs, t + 5000);
    EXPECT_TRUE(m_state->stopped);
    EXPECT_TRUE(m_state->spans.empty());
    EXPECT_TRUE(m_state->collectives.empty());
}

TEST_F(DeviceTest, WorkBesideTheComputationIsOfItsUnitAndBreaksNoPhase)
{
    open(RecordLevel::Light);
    m_recorder->stepBegan(1);
    const int64_t t = realtimeNs();
    {
        const observe::SpanScope backward(*m_recorder, {.name = "backward", .phase = Phase::Backward, .unit = 1});
        m_state->kernel(m_state->launch(), "gemm", t, t + 1000);
        {
            const observe::DeviceWorkScope gather(*m_recorder, Phase::Backward, 0);
            m_state->kernel(m_state->launch(), "cast", t + 1000, t + 2000, 20);
        }
        m_state->kernel(m_state->launch(), "gemm", t + 2000, t + 3000);
    }
    {
        const observe::DeviceWorkScope gather(*m_recorder, Phase::Forward, 1);
        m_state->kernel(m_state->launch(), "cast", t + 3000, t + 4000, 20);
    }
    m_recorder->stepEnded({});
    EXPECT_TRUE(m_state->spans.empty());
    test::PlainSql database = close();
    EXPECT_THAT(
        database.lines("SELECT name.text, phase, step_id, unit_id, collective_id FROM span JOIN lane USING (lane_id) "
                       "JOIN name USING (name_id) WHERE lane.kind = 'stream' ORDER BY start_ns"),
        ElementsAre("gemm|backward|1|2|-", "cast|backward|1|1|-", "gemm|backward|1|2|-", "cast|forward|1|2|-"));
    EXPECT_THAT(database.lines("SELECT name.text, unit_id, duration_ns FROM span JOIN lane USING (lane_id) "
                               "JOIN name USING (name_id) WHERE lane.kind = 'phase'"),
                ElementsAre("backward|2|3000"))
        << "one bracket of what the rank computes";
    EXPECT_EQ(database.value("SELECT count(*) FROM span JOIN lane USING (lane_id) WHERE lane.kind = 'thread'"), 1)
        << "the span alone";
    EXPECT_GE(database.value("SELECT end_ns FROM step"), t + 4000) << "the step waits for it";
}

TEST_F(DeviceTest, WhatConnectsRanksIsNoPartOfTheCollectiveThatNeededIt)
{
    open(RecordLevel::Light);
    const int64_t t = realtimeNs();
    const observe::CollectiveInfo info{.operation = Operation::AllReduce,
                                       .unit = 1,
                                       .phase = Phase::Input,
                                       .dtype = "fp64",
                                       .stream = reinterpret_cast<const void *>(20)};
    const auto call = [&](int64_t startNs) {
        const observe::DeviceWorkScope scope(*m_recorder, Phase::Input, 1);
        const int64_t number = m_recorder->beginCollective(info);
        m_state->kernel(m_state->launch(), "memcpy host to device", startNs, startNs + 10, 142, ActivityKind::Memcpy);
        m_state->kernel(m_state->launch(), "memset", startNs + 20, startNs + 30, 143, ActivityKind::Memset);
        m_state->kernel(m_state->launch(), "ncclDevKernel_AllReduce_Sum_f64", startNs + 40, startNs + 60, 20);
        m_state->kernel(m_state->launch(), "memcpy device to device", startNs + 60, startNs + 70, 20,
                        ActivityKind::Memcpy);
        m_recorder->collectiveEnqueued(number);
    };
    call(t);
    m_recorder->stepBegan(1);
    call(t + 100);
    m_recorder->stepEnded({});
    test::PlainSql database = close();
    EXPECT_THAT(
        database.lines("SELECT lane.name, name.text, phase, step_id, unit_id, collective_id FROM span JOIN lane "
                       "USING (lane_id) JOIN name USING (name_id) WHERE lane.kind = 'stream' ORDER BY start_ns"),
        ElementsAre("NCCL set-up|memcpy host to device|input|-|-|-", "NCCL set-up (stream 143)|memset|input|-|-|-",
                    "communication|ncclDevKernel_AllReduce_Sum_f64|input|-|2|1",
                    "communication|memcpy device to device|input|-|2|1",
                    "NCCL set-up|memcpy host to device|input|1|-|-", "NCCL set-up (stream 143)|memset|input|1|-|-",
                    "communication|ncclDevKernel_AllReduce_Sum_f64|input|1|2|2",
                    "communication|memcpy device to device|input|1|2|2"));
    EXPECT_THAT(database.lines("SELECT started_ns - " + std::to_string(t) + " FROM collective ORDER BY sequence, 1"),
                ElementsAre("40", "140"));
}

TEST_F(DeviceTest, AStepLastsUntilItsDeviceIsDone)
{
    open(RecordLevel::Light);
    const auto step = [&](int64_t number, int64_t startNs, int64_t endNs) {
        m_recorder->stepBegan(number);
        uint32_t call = 0;
        {
            const observe::SpanScope span(*m_recorder, {.name = "forward", .phase = Phase::Forward, .unit = 1});
            call = m_state->launch();
        }
        m_recorder->stepEnded({});
        m_state->kernel(call, "gemm", startNs, endNs);
    };
    constexpr int64_t kLong = 1'000'000'000; // far longer than the host takes
    const int64_t t = realtimeNs();
    step(1, t + kLong, t + 2 * kLong);
    step(2, t + 2 * kLong, t + 3 * kLong);
    test::PlainSql database = close();
    EXPECT_EQ(database.value("SELECT end_ns FROM step WHERE number = 1"), t + 2 * kLong);
    EXPECT_EQ(database.value("SELECT start_ns FROM step WHERE number = 2"), t + 2 * kLong);
    EXPECT_EQ(database.value("SELECT end_ns FROM step WHERE number = 2"), t + 3 * kLong);
    EXPECT_THAT(database.lines("SELECT compute_ns FROM step ORDER BY number"), ElementsAre("1000000000", "1000000000"));
    // The phase lane shows when the device was there, not when the host called.
    EXPECT_THAT(database.lines("SELECT name.text, step_id, unit_id, duration_ns FROM span JOIN lane USING (lane_id) "
                               "JOIN name USING (name_id) WHERE lane.kind = 'phase' ORDER BY start_ns"),
                ElementsAre("forward|1|2|1000000000", "forward|2|2|1000000000"));
}

TEST(Lanes, AreNamedByWhatRunsThere)
{
    std::map<int64_t, store::LaneRow> rows;
    Lanes lanes(1, 1, [&](const store::LaneRow &row) { rows[row.laneId] = row; });
    const int64_t main = lanes.stream(1, 7, StreamRole::Copies); // the batch is copied before anything is computed
    EXPECT_EQ(rows[main].name, "copies");
    EXPECT_EQ(lanes.stream(1, 7, StreamRole::Compute), main);
    const int64_t nccl = lanes.stream(1, 20, StreamRole::Compute); // a cast
    EXPECT_EQ(rows[nccl].name, "compute (stream 20)");
    EXPECT_EQ(lanes.stream(1, 20, StreamRole::Communication), nccl);
    EXPECT_EQ(lanes.stream(1, 20, StreamRole::Copies), nccl);
    const int64_t side = lanes.stream(1, 13, StreamRole::Compute);
    const int64_t offload = lanes.stream(1, 24, StreamRole::SetUp); // its like, of a slower start
    const int64_t setUp = lanes.stream(1, 142, StreamRole::SetUp);
    EXPECT_EQ(rows[setUp].name, "NCCL set-up (stream 142)");
    EXPECT_EQ(lanes.stream(1, 24, StreamRole::Copies), offload);
    EXPECT_EQ(lanes.stream(1, 7, StreamRole::Copies), main);
    EXPECT_EQ(rows[main].name, "compute");
    EXPECT_EQ(rows[nccl].name, "communication");
    EXPECT_EQ(rows[side].name, "compute (stream 13)");
    EXPECT_EQ(rows[offload].name, "copies");
    EXPECT_EQ(rows[offload].nativeId, 24);
    EXPECT_LT(rows[main].sortOrder, rows[side].sortOrder);
    EXPECT_LT(rows[side].sortOrder, rows[nccl].sortOrder);
    EXPECT_LT(rows[nccl].sortOrder, rows[offload].sortOrder);
    EXPECT_LT(rows[offload].sortOrder, rows[lanes.thread(5)].sortOrder);
    EXPECT_LT(rows[lanes.thread(5)].sortOrder, rows[setUp].sortOrder) << "of no step, so last";
}

TEST(Collectives, AreForgottenAlsoWhereNoEndIsEverKnown)
{
    Collectives collectives([](const store::CollectiveRow &) {});
    for (int64_t number = 0; number < 3; ++number)
        collectives.began({.collectiveId = number + 1}, {.number = number, .step = 1});
    collectives.deviceWork(0, 10, 20);
    collectives.forgetBefore(2, 0);
    EXPECT_FALSE(collectives.find(0)) << "it has ended";
    EXPECT_TRUE(collectives.find(1)) << "its end may come";
    collectives.forgetBefore(2, 2);
    EXPECT_FALSE(collectives.find(1));
    EXPECT_TRUE(collectives.find(2));
}

TEST_F(DeviceTest, AtFullKeepsKernelsAndCalls)
{
    open(RecordLevel::Full);
    m_recorder->stepBegan(1);
    const int64_t t = realtimeNs();
    {
        const observe::SpanScope span(*m_recorder, {.name = "forward", .unit = 1});
        m_state->kernel(m_state->launch(), "gemm", t, t + 10);
    }
    m_recorder->stepEnded({});
    test::PlainSql database = close();
    EXPECT_THAT(database.lines("SELECT grid, block, registers, shared_bytes, graph_id FROM kernel JOIN span USING "
                               "(lane_id, start_ns, span_id)"),
                ElementsAre("4,2,1|128,1,1|40|0|-"));
    EXPECT_THAT(database.lines("SELECT category, duration_ns, correlation, unit_id FROM span JOIN name USING (name_id) "
                               "WHERE text = 'cudaLaunchKernel'"),
                ElementsAre("host|500|1|2"));
}

TEST_F(DeviceTest, ALevelSetWhileItRunsIsTheDevicesToo)
{
    open(RecordLevel::Light);
    const auto step = [&](int64_t number) {
        m_recorder->stepBegan(number);
        const observe::SpanScope forward(*m_recorder, {.name = "forward", .unit = 1});
        m_state->kernel(m_state->launch(), "gemm", realtimeNs(), realtimeNs() + 100);
    };
    const auto ended = [&] { m_recorder->stepEnded({}); };
    step(1), ended();
    m_recorder->configurationChanged({.firstStep = 2, .level = RecordLevel::Full});
    step(2), ended();
    m_recorder->configurationChanged({.firstStep = 3, .level = RecordLevel::Off});
    m_recorder->stepBegan(3);
    m_recorder->stepEnded({});
    test::PlainSql database = close();
    EXPECT_THAT(m_state->levels, ElementsAre(RecordLevel::Full, RecordLevel::Off));
    EXPECT_THAT(
        database.lines("SELECT step.number, step.level, count(span_id) FROM step LEFT JOIN span USING (step_id) "
                       "GROUP BY 1 ORDER BY 1"),
        ElementsAre(testing::StartsWith("1|light|"), testing::StartsWith("2|full|"), "3|off|0"));
}

TEST_F(DeviceTest, CountsAndReportsWhatTheDeviceLost)
{
    open(RecordLevel::Light);
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->batch.dropped = 17;
        m_state->batch.warnings = {"something odd"};
    }
    test::PlainSql database = close();
    EXPECT_EQ(database.value("SELECT sum(dropped_records) FROM flush"), 17);
    EXPECT_EQ(m_recorder->losses().device, 17);
    EXPECT_THAT(database.lines("SELECT text FROM event WHERE kind = 'recording'"),
                ElementsAre(HasSubstr("CUPTI dropped 17 records")));
    EXPECT_THAT(database.lines("SELECT text FROM event WHERE kind = 'warning'"), testing::Contains("something odd"));
}

TEST_F(DeviceTest, OutOfMemoryCostsRecordsAndNotTheRun)
{
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->outOfMemory = true;
    }
    open(RecordLevel::Light);
    const auto failed = [&] {
        const std::lock_guard lock(m_state->mutex);
        return !m_state->outOfMemory;
    };
    for (int tries = 0; tries < 1000 && !failed(); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(failed());
    m_recorder->stepBegan(1);
    m_recorder->stepEnded({});
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->outOfMemory = true; // at the end too
    }
    test::PlainSql database = close();
    EXPECT_EQ(database.value("SELECT count(*) FROM step WHERE end_ns IS NOT NULL"), 1);
    EXPECT_EQ(database.value("SELECT sum(dropped_records) FROM flush"), 2);
}

TEST(DeviceJoin, JoinsWhatComesApartAndInAnyOrder)
{
    std::vector<std::string> work;
    int owed = 0;
    DeviceJoin join({.work =
                         [&](const JoinedRecord &joined) {
                             work.push_back(std::string(joined.record.name) +
                                            (joined.context ? " of " + std::to_string(joined.context->unit) : ""));
                         },
                     .owes = [&](int64_t step) { owed += step == 5; },
                     .paid = [&](int64_t step, int64_t) { owed -= step == 5; }});
    const auto kernel = [](uint32_t correlation, std::string_view name, uint32_t graph = 0) {
        ActivityRecord record;
        record.correlation = correlation;
        record.name = name;
        record.graphId = graph;
        return record;
    };
    const auto correlation = [](uint32_t id, observe::UnitIndex unit) {
        ActivityRecord record;
        record.kind = ActivityKind::Correlation;
        record.correlation = id;
        record.contextValue = packContext({5, unit, Phase::Forward});
        return record;
    };
    join.take({kernel(1, "early")});
    EXPECT_TRUE(work.empty());
    join.take({correlation(1, 3), correlation(2, 4)});
    EXPECT_THAT(work, ElementsAre("early of 3"));
    EXPECT_EQ(owed, 1) << "the second call's record";
    // One launch of a graph, two kernels.
    join.take({kernel(2, "first", 1)});
    join.take({kernel(2, "second", 1)});
    EXPECT_THAT(work, ElementsAre("early of 3", "first of 4", "second of 4"));
    EXPECT_EQ(owed, 0);
    // A call outside of every span: waited for a while, then taken as it is.
    join.take({kernel(9, "stray")});
    for (uint32_t i = 0; i < DeviceJoin::kRecordPatience; ++i)
        join.take({});
    EXPECT_EQ(work.back(), "stray");
    // A call that failed owes nothing.
    ActivityRecord failed;
    failed.kind = ActivityKind::Call;
    failed.correlation = 10;
    join.take({correlation(10, 1), failed});
    EXPECT_EQ(owed, 0);
}

ActivityRecord spanOf(uint32_t correlation)
{
    ActivityRecord record;
    record.kind = ActivityKind::Correlation;
    record.correlation = correlation;
    record.contextValue = packContext({1, 0, Phase::Forward});
    return record;
}

ActivityRecord kernelOf(uint32_t correlation, std::string_view name)
{
    ActivityRecord record;
    record.correlation = correlation;
    record.name = name;
    return record;
}

TEST(DeviceJoin, ACallThatNeverGetsARecordKeepsNothingElse)
{
    DeviceJoin join({.work = [](const JoinedRecord &) {}, .owes = [](int64_t) {}, .paid = [](int64_t, int64_t) {}});
    join.take({spanOf(1)}); // a copy of 0 bytes
    for (uint32_t call = 2; call < 50'000; ++call)
        join.take({spanOf(call), kernelOf(call, "gemm")});
    EXPECT_LT(join.remembered(), 5000u);
}

TEST(DeviceJoin, TheTwoCorrelationsOfACallMayComeApart)
{
    const auto collectiveOf = [](uint32_t correlation, uint64_t number) {
        ActivityRecord record;
        record.kind = ActivityKind::Correlation;
        record.correlation = correlation;
        record.context = ContextKind::Collective;
        record.contextValue = number;
        return record;
    };
    std::vector<JoinedRecord> work;
    int owed = 0;
    DeviceJoin join({.work = [&](const JoinedRecord &joined) { work.push_back(joined); },
                     .owes = [&](int64_t) { ++owed; },
                     .paid = [&](int64_t, int64_t) { --owed; }});
    // The kernel stands in the same buffer as its span's, its collective's is in the next.
    join.take({spanOf(1), kernelOf(1, "ncclDevKernel_AllGather")});
    join.take({collectiveOf(1, 70)});
    ASSERT_EQ(work.size(), 1u);
    EXPECT_EQ(work[0].collective, 70);
    EXPECT_TRUE(work[0].context);
    EXPECT_EQ(owed, 0);
    // Its collective's is in the same buffer, its span's in the next: nobody waits for a second record.
    join.take({collectiveOf(2, 71), kernelOf(2, "ncclDevKernel_AllGather")});
    join.take({spanOf(2)});
    ASSERT_EQ(work.size(), 2u);
    EXPECT_EQ(work[1].collective, 71);
    EXPECT_EQ(owed, 0);
    // None of a collective that was told of: a batch later it is taken as it is.
    join.take({spanOf(3), kernelOf(3, "ncclDevKernel_AllGather")});
    EXPECT_EQ(work.size(), 2u);
    join.take({});
    ASSERT_EQ(work.size(), 3u);
    EXPECT_TRUE(work[2].context);
    // At the end what waits is joined with what is known.
    join.take({spanOf(4), kernelOf(4, "ncclDevKernel_AllGather")});
    join.drain();
    ASSERT_EQ(work.size(), 4u);
    EXPECT_TRUE(work[3].context);
    EXPECT_EQ(owed, 0);
    join.take({});
    join.take({});
    EXPECT_EQ(join.remembered(), 0u);
}

TEST(DeviceJoin, ACopyBesideTheComputationWaitsForItsCollective)
{
    ActivityRecord aside = spanOf(1);
    aside.contextValue = packContext({1, 0, Phase::Forward, true});
    ActivityRecord copy = kernelOf(1, "memset");
    copy.kind = ActivityKind::Memset;
    ActivityRecord collective = spanOf(1);
    collective.context = ContextKind::Collective;
    collective.contextValue = 70;
    std::vector<JoinedRecord> work;
    DeviceJoin join({.work = [&](const JoinedRecord &joined) { work.push_back(joined); },
                     .owes = [](int64_t) {},
                     .paid = [](int64_t, int64_t) {}});
    join.take({aside, copy});
    EXPECT_TRUE(work.empty());
    join.take({collective});
    ASSERT_EQ(work.size(), 1u);
    EXPECT_EQ(work[0].collective, 70);
    // Of none: taken a batch later. In a span, at once.
    aside.correlation = copy.correlation = 2;
    ActivityRecord ofSpan = copy;
    ofSpan.correlation = 3;
    join.take({aside, copy, spanOf(3), ofSpan});
    EXPECT_EQ(work.size(), 2u);
    join.take({});
    ASSERT_EQ(work.size(), 3u);
    EXPECT_TRUE(work[2].context->aside);
}

TEST(Cupti, SaysWhyThereIsNone)
{
    auto source = makeCuptiSource();
    if (source)
        GTEST_SKIP() << "this machine has a driver and CUPTI";
    EXPECT_FALSE(source.error().text.empty());
}

} // namespace
} // namespace shardscope::collect
