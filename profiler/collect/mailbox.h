// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/bounded_queue.h"
#include "profiler/collect/recorder_event.h"
#include "profiler/collect/text_table.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace shardscope::collect {

/// What the threads of a rank and the recorder's own thread share. Nothing here waits.
struct Mailbox
{
    explicit Mailbox(size_t queueEvents)
        : events(queueEvents)
        , samples(4096)
    {
    }

    /// Makes the queue of allocations, which is large: only a recording at `full` has one. Once, from the train thread.
    void openAllocations()
    {
        if (allocations.load())
            return;
        m_allocations = std::make_unique<BoundedQueue<AllocationEvent>>(size_t{1} << 17);
        allocations.store(m_allocations.get(), std::memory_order_release);
    }

    template <typename T>
    void send(BoundedQueue<T> &queue, T &&value)
    {
        if (!queue.push(std::move(value)))
            dropped.fetch_add(1, std::memory_order_relaxed);
    }

    BoundedQueue<Event> events;
    BoundedQueue<MemorySample> samples;
    std::atomic<BoundedQueue<AllocationEvent> *> allocations{nullptr}; ///< null until openAllocations()
    TextTable texts;
    std::atomic<int64_t> dropped{0}; ///< since the recorder's thread last looked
    std::atomic<int64_t> unread{0};  ///< and readings of memory that could not be had

private:
    std::unique_ptr<BoundedQueue<AllocationEvent>> m_allocations;
};

} // namespace shardscope::collect
