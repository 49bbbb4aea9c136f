// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/lanes.h"

#include "core/base/file.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

namespace shardscope::collect {

namespace {

// The order of the lanes within a rank: phases above, then the device, then the host, and last what is of no step.
constexpr int64_t kCompute = 100;
constexpr int64_t kCommunication = 200;
constexpr int64_t kCopies = 250;
constexpr int64_t kThreads = 300;
constexpr int64_t kSetUp = 100'000;

struct Role
{
    std::string_view name;
    int64_t sortOrder;
};
constexpr Role roleOf(StreamRole role)
{
    switch (role) {
    case StreamRole::Compute:
        return {"compute", kCompute};
    case StreamRole::Communication:
        return {"communication", kCommunication};
    case StreamRole::SetUp:
        return {"NCCL set-up", kSetUp};
    case StreamRole::Copies:
        break;
    }
    return {"copies", kCopies};
}

/// The first thread is the one that trains: it is the process's own.
std::string threadName(int32_t threadId)
{
    if (threadId == ::getpid())
        return "train thread";
    auto name = readTextFile(fmt::format("/proc/self/task/{}/comm", threadId));
    if (!name || name->empty())
        return fmt::format("thread {}", threadId);
    while (!name->empty() && name->back() == '\n')
        name->pop_back();
    return *name;
}

} // namespace

Lanes::Lanes(int64_t firstLaneId, int64_t deviceId, RowSink sink)
    : m_nextId(firstLaneId)
    , m_deviceId(deviceId)
    , m_sink(std::move(sink))
{
}

int64_t Lanes::make(store::LaneRow row)
{
    row.laneId = m_nextId++;
    m_sink(row);
    return row.laneId;
}

int64_t Lanes::phases()
{
    if (!m_phases)
        m_phases = make({.deviceId = m_deviceId, .kind = LaneKind::Phase, .name = "phases"});
    return *m_phases;
}

int64_t Lanes::communication()
{
    if (!m_communication) {
        m_communication = make(
            {.deviceId = m_deviceId, .kind = LaneKind::Stream, .name = "communication", .sortOrder = kCommunication});
    }
    return *m_communication;
}

int64_t Lanes::thread(int32_t threadId)
{
    const auto found = m_threads.find(threadId);
    if (found != m_threads.end())
        return found->second;
    const auto order = kThreads + static_cast<int64_t>(m_threads.size());
    const int64_t lane =
        make({.kind = LaneKind::Thread, .nativeId = threadId, .name = threadName(threadId), .sortOrder = order});
    m_threads.emplace(threadId, lane);
    return lane;
}

int64_t Lanes::stream(uint32_t contextId, uint32_t streamId, StreamRole work)
{
    const auto [found, isNew] = m_streams.try_emplace({contextId, streamId});
    Stream &stream = found->second;
    if (isNew) {
        stream.role = work;
        stream.row = {.deviceId = m_deviceId, .kind = LaneKind::Stream, .nativeId = streamId, .contextId = contextId};
        describe(stream);
        stream.row.laneId = make(stream.row);
    } else if (work > stream.role) {
        stream.role = work;
        describe(stream);
        m_sink(stream.row);
    }
    return stream.row.laneId;
}

void Lanes::describe(Stream &stream)
{
    const Role role = roleOf(stream.role);
    const bool taken =
        std::ranges::any_of(m_streams, [&](const auto &other) { return other.second.row.name == role.name; });
    stream.row.name = taken ? fmt::format("{} (stream {})", role.name, stream.row.nativeId) : std::string(role.name);
    stream.row.sortOrder = role.sortOrder + std::ranges::count_if(m_streams, [&](const auto &other) {
                               return &other.second != &stream && other.second.role == stream.role;
                           });
}

} // namespace shardscope::collect
