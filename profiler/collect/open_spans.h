// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/bounded_queue.h"
#include "profiler/collect/recorder_event.h"

#include <array>
#include <cstdint>
#include <memory>

namespace shardscope::collect {

/// The spans that have begun: a fixed number of places, handed out and taken back by any thread without a lock. Only an
/// ended span goes through the queue, so a full queue loses it whole.
class OpenSpans
{
public:
    static constexpr size_t kPlaces = 1024;

    struct Place
    {
        SpanEvent event;
        int64_t monotonicNs = 0;
    };

    OpenSpans()
        : m_free(kPlaces)
    {
        for (uint32_t i = 0; i < kPlaces; ++i)
            m_free.push(uint32_t{i});
    }

    /// A handle above 0, or 0 where all places are taken.
    int64_t take()
    {
        uint32_t index = 0;
        return m_free.pop(index) ? int64_t{index} + 1 : 0;
    }
    /// Null for handle 0.
    Place *find(int64_t handle)
    {
        return handle > 0 && handle <= static_cast<int64_t>(kPlaces) ? &m_places[static_cast<size_t>(handle - 1)]
                                                                     : nullptr;
    }
    void giveBack(int64_t handle) { m_free.push(static_cast<uint32_t>(handle - 1)); }

private:
    std::array<Place, kPlaces> m_places{};
    BoundedQueue<uint32_t> m_free;
};

} // namespace shardscope::collect
