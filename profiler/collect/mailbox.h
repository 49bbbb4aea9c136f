// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/bounded_queue.h"
#include "profiler/collect/recorder_event.h"
#include "profiler/collect/text_table.h"

#include <atomic>
#include <cstdint>

namespace shardscope::collect {

/// What the threads of a rank and the recorder's own thread share. Nothing here waits.
struct Mailbox
{
    Mailbox(size_t queueEvents, bool full)
        : events(queueEvents)
        , samples(4096)
        , allocations(full ? size_t{1} << 17 : 2)
    {
    }

    template <typename T>
    void send(BoundedQueue<T> &queue, T &&value)
    {
        if (!queue.push(std::move(value)))
            dropped.fetch_add(1, std::memory_order_relaxed);
    }

    BoundedQueue<Event> events;
    BoundedQueue<MemorySample> samples;
    BoundedQueue<AllocationEvent> allocations;
    TextTable texts;
    std::atomic<int64_t> dropped{0}; ///< since the recorder's thread last looked
    std::atomic<int64_t> unread{0};  ///< and readings of memory that could not be had
};

} // namespace shardscope::collect
