// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/store/rows.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace shardscope::collect {

/// What a stream is there for, as far as its work so far tells; the later in this list, the surer. A stream that
/// computes copies too, and NCCL's has casts and sums of its own. SetUp: NCCL's copies when it connects ranks.
enum class StreamRole { SetUp, Copies, Compute, Communication };

/// The lanes of a rank: one of phases, one a thread, one a CUDA stream (or, where the transfers are the host's, one for
/// communication). Each is made, and its row handed on, when something first happens there.
class Lanes
{
public:
    using RowSink = std::function<void(const store::LaneRow &)>;
    Lanes(int64_t firstLaneId, int64_t deviceId, RowSink sink);

    int64_t phases();
    int64_t communication();
    int64_t thread(int32_t threadId);
    /// A stream on which work of this kind ran. The first of each role has the role's name ("compute", "communication",
    /// "copies", "NCCL set-up"), others their number too ("compute (stream 13)"): within a rank names are unique.
    int64_t stream(uint32_t contextId, uint32_t streamId, StreamRole work);

private:
    struct Stream
    {
        StreamRole role = StreamRole::SetUp;
        store::LaneRow row;
    };
    int64_t make(store::LaneRow row);
    void describe(Stream &stream);

    int64_t m_nextId;
    const int64_t m_deviceId;
    RowSink m_sink;
    std::optional<int64_t> m_phases;
    std::optional<int64_t> m_communication;
    std::map<int32_t, int64_t> m_threads;
    std::map<std::pair<uint32_t, uint32_t>, Stream> m_streams;
};

} // namespace shardscope::collect
