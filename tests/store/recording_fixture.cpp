// SPDX-License-Identifier: Apache-2.0
#include "recording_fixture.h"

#include "fixture_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>

namespace shardscope::test {
namespace {

constexpr int64_t kSupervisorPid = 4000;

std::string membersOf(int64_t ranks)
{
    std::string members = "[0";
    for (int64_t rank = 1; rank < ranks; ++rank)
        members += fmt::format(",{}", rank);
    return members + "]";
}

store::ProcessRow processOf(const FixtureOptions &options, int64_t rank)
{
    store::ProcessRow row{.attempt = options.attempt, .rank = rank, .localRank = rank, .worldSize = options.ranks};
    row.host = "workstation";
    row.pid = kSupervisorPid + 1 + rank;
    row.parentPid = kSupervisorPid;
    row.command = "shardscope-worker";
    row.startedNs = options.originNs + (options.attempt - 1) * 1'000'000'000;
    return row;
}

void describeUnits(store::Writer &writer, const FixtureOptions &options)
{
    for (int64_t unit = 1; unit <= options.blocks + 2; ++unit) {
        store::UnitRow row{.unitId = unit, .ordinal = unit - 1, .parameters = 65536, .parameterBytes = 262144};
        const bool first = unit == 1;
        const bool last = unit == options.blocks + 2;
        row.name = first ? "embedding" : last ? "head" : fmt::format("block.{}", unit - 2);
        row.kind = first ? UnitKind::Embedding : last ? UnitKind::Head : UnitKind::Block;
        row.shardBytes = 262144 / options.ranks;
        writer.put(row);
    }
}

void describeLanes(store::Writer &writer, const FixtureOptions &options)
{
    const LaneKind stream = options.cuda ? LaneKind::Stream : LaneKind::Thread;
    const auto lane = [&](FixtureLane id, LaneKind kind, const char *name, bool onDevice) {
        store::LaneRow row{.laneId = id, .kind = kind, .nativeId = 100 + id, .name = name, .sortOrder = id};
        if (onDevice)
            row.deviceId = 1;
        writer.put(row);
    };
    lane(kPhases, LaneKind::Phase, "phases", false);
    lane(kMainThread, LaneKind::Thread, "main thread", false);
    lane(kCompute, stream, "compute", true);
    lane(kCommunication, stream, "communication", true);
    lane(kCopies, stream, "copies", true);
}

void describeRank(store::Writer &writer, const FixtureOptions &options, int64_t rank)
{
    const store::ProcessRow process = processOf(options, rank);
    writer.put(process);
    writer.put(store::MetaRow{1, "origin_ns", fmt::format("{}", options.originNs)});
    writer.put(store::MetaRow{1, "schema_version", fmt::format("{}", store::kSchemaVersion)});
    writer.put(store::MetaRow{1, "source", "shardscope"});
    writer.put(store::MetaRow{1, "model_flops_per_token", "1000000"});
    store::DeviceRow device{.deviceId = 1, .ordinal = rank};
    device.kind = options.cuda ? DeviceKind::Cuda : DeviceKind::Cpu;
    device.uuid = fmt::format("GPU-{}", rank);
    device.name = options.cuda ? "Test GPU" : "Test CPU";
    device.memoryBytes = int64_t{24} << 30;
    device.peakFlops = 1e12;
    writer.put(device);
    writer.put(store::ConfigRow{
        .configId = 1,
        .firstStep = options.firstStep,
        .fullJson = fmt::format(R"({{"parallel": {{"strategy": "full", "prefetch": "{0}", "forward_prefetch": {1}}}}})",
                                options.prefetch ? "pre" : "off", options.prefetch),
        .requestedNs = process.startedNs});
    writer.put(store::CommunicatorRow{.communicatorId = 1,
                                      .uid = fmt::format("attempt-{}/world", options.attempt),
                                      .backend = options.cuda ? "nccl" : "gloo",
                                      .size = options.ranks,
                                      .rankIn = rank,
                                      .membersJson = membersOf(options.ranks)});
    writer.add(store::ClockRow{1, process.startedNs, 1000, 0, 0});
    describeUnits(writer, options);
    describeLanes(writer, options);
}

} // namespace

struct LiveFixture::Rank
{
    int64_t rank;
    store::Writer writer;
};

LiveFixture::LiveFixture() = default;
LiveFixture::LiveFixture(LiveFixture &&) noexcept = default;
LiveFixture &LiveFixture::operator=(LiveFixture &&) noexcept = default;
LiveFixture::~LiveFixture() = default;

Result<LiveFixture> LiveFixture::start(const std::filesystem::path &runFolder, const FixtureOptions &options)
{
    const std::filesystem::path folder = runFolder / fmt::format("attempt-{}", options.attempt);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return fail("Can't make {}: {}.", folder.string(), error.message());
    LiveFixture live;
    live.m_options = options;
    live.m_nextStep = options.firstStep;
    for (int64_t rank = 0; rank < options.ranks; ++rank) {
        if (std::count(options.skipRanks.begin(), options.skipRanks.end(), rank) > 0)
            continue;
        auto writer = store::Writer::open(folder / fmt::format("rank-{}.sqlite", rank), {1, options.retention});
        if (!writer)
            return tl::unexpected(writer.error());
        describeRank(*writer, options, rank);
        if (auto flushed = writer->flush(rank == 0 ? options.droppedRecords : 0); !flushed)
            return tl::unexpected(flushed.error());
        live.m_ranks.push_back(std::make_unique<Rank>(Rank{rank, std::move(*writer)}));
    }
    auto supervisor = store::Writer::open(folder / "supervisor.sqlite");
    if (!supervisor)
        return tl::unexpected(supervisor.error());
    store::ProcessRow process = processOf(options, 0);
    process.rank = process.localRank = std::nullopt;
    process.pid = kSupervisorPid;
    process.command = "shardscope-cli run";
    supervisor->put(process);
    supervisor->put(store::MetaRow{1, "origin_ns", fmt::format("{}", options.originNs)});
    supervisor->add(store::EventRow{.timeNs = process.startedNs, .kind = EventKind::Command, .text = "run started"});
    if (auto flushed = supervisor->flush(); !flushed)
        return tl::unexpected(flushed.error());
    live.m_supervisor = std::make_unique<store::Writer>(std::move(*supervisor));
    return live;
}

Result<> LiveFixture::writeStep()
{
    for (const auto &rank : m_ranks) {
        FixtureStep(rank->writer, m_options, rank->rank, m_nextStep).write();
        const int64_t timeNs = m_options.originNs + 1'000'000 + (m_options.attempt - 1) * 1'000'000'000 +
                               (m_nextStep - m_options.firstStep + 1) * m_options.stepNs;
        rank->writer.add(
            store::MetricRow{1, std::nullopt, timeNs, rank->writer.nameId("host_rss_bytes"), 512.0 * 1024 * 1024});
        if (m_options.cuda)
            rank->writer.add(store::MetricRow{1, 1, timeNs, rank->writer.nameId("power_watts"), 250.5});
        if (rank->rank == 0 && m_nextStep == m_options.firstStep + m_options.steps - 1) {
            rank->writer.add(store::EventRow{.timeNs = timeNs,
                                             .stepId = m_nextStep - m_options.firstStep + 1,
                                             .kind = EventKind::Checkpoint,
                                             .text = "checkpoint written",
                                             .detailJson = R"({"path": "checkpoints/step-000004"})"});
        }
        if (auto flushed = rank->writer.flush(); !flushed)
            return flushed;
    }
    ++m_nextStep;
    return {};
}

Result<> LiveFixture::finish()
{
    const int64_t endNs = m_options.originNs + 1'000'000 + (m_options.attempt - 1) * 1'000'000'000 +
                          (m_nextStep - m_options.firstStep) * m_options.stepNs + 1'000'000;
    for (const auto &rank : m_ranks) {
        if (m_options.finish && m_options.killedRank != rank->rank) {
            store::ProcessRow process = processOf(m_options, rank->rank);
            process.endedNs = endNs;
            process.exitCode = 0;
            rank->writer.put(process);
        }
        if (auto closed = rank->writer.close(); !closed)
            return closed;
    }
    if (m_options.killedRank) {
        m_supervisor->add(store::EventRow{.timeNs = endNs,
                                          .kind = EventKind::Death,
                                          .text = fmt::format("rank {} was killed by signal 9", *m_options.killedRank),
                                          .detailJson = fmt::format(R"({{"rank": {}, "pid": {}, "signal": 9, )"
                                                                    R"("exit_code": null, "text": "killed"}})",
                                                                    *m_options.killedRank,
                                                                    kSupervisorPid + 1 + *m_options.killedRank)});
    }
    m_ranks.clear();
    return m_supervisor->close();
}

Result<> writeFixtureRecording(const std::filesystem::path &runFolder, const FixtureOptions &options)
{
    auto live = LiveFixture::start(runFolder, options);
    if (!live)
        return tl::unexpected(live.error());
    for (int64_t step = 0; step < options.steps; ++step) {
        if (auto written = live->writeStep(); !written)
            return written;
    }
    return live->finish();
}

int64_t fixturePeakBytes(const FixtureOptions &options)
{
    const int64_t gatheredKib = options.prefetch ? 1024 : 512;
    return (4096 + 8192 + gatheredKib + 256 * (options.blocks + 2) + 64 + 32 + 16 + 8 + 4) * 1024;
}

} // namespace shardscope::test
