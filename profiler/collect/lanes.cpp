// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/lanes.h"

#include "core/base/file.h"

#include <fmt/format.h>
#include <unistd.h>

namespace shardscope::collect {

namespace {

// The order of the lanes within a rank: phases above, then the device, then the host.
constexpr int64_t kStreams = 100;
constexpr int64_t kCommunication = 200;
constexpr int64_t kThreads = 300;

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

int64_t Lanes::stream(uint32_t contextId, uint32_t streamId)
{
    const auto found = m_streams.find({contextId, streamId});
    if (found != m_streams.end())
        return found->second.laneId;
    store::LaneRow row{.deviceId = m_deviceId,
                       .kind = LaneKind::Stream,
                       .nativeId = streamId,
                       .contextId = contextId,
                       .name = fmt::format("stream {}", streamId),
                       .sortOrder = kStreams + static_cast<int64_t>(m_streams.size())};
    row.laneId = make(row);
    m_streams.emplace(std::pair(contextId, streamId), row);
    return row.laneId;
}

void Lanes::nameStream(uint32_t contextId, uint32_t streamId, std::string_view what)
{
    stream(contextId, streamId);
    store::LaneRow &row = m_streams.at({contextId, streamId});
    std::string name = fmt::format("stream {} ({})", streamId, what);
    if (row.name == name)
        return;
    row.name = std::move(name);
    row.sortOrder += kCommunication - kStreams;
    m_sink(row);
}

} // namespace shardscope::collect
