// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace shardscope::collect {

/// A bounded queue for any number of producers and consumers without locks (Dmitry Vyukov's, 1024cores.net): each cell
/// carries the ticket that may use it next. Neither side ever waits; a full queue refuses.
template <typename T>
class BoundedQueue
{
public:
    /// `capacity` is rounded up to a power of two.
    explicit BoundedQueue(size_t capacity)
        : m_mask(std::bit_ceil(capacity < 2 ? size_t{2} : capacity) - 1)
        , m_cells(std::make_unique<Cell[]>(m_mask + 1))
    {
        for (size_t i = 0; i <= m_mask; ++i)
            m_cells[i].ticket.store(i, std::memory_order_relaxed);
    }

    size_t capacity() const { return m_mask + 1; }

    /// False, and `value` is left as it was, where the queue is full.
    bool push(T &&value)
    {
        size_t position = m_tail.load(std::memory_order_relaxed);
        for (;;) {
            Cell &cell = m_cells[position & m_mask];
            const size_t ticket = cell.ticket.load(std::memory_order_acquire);
            const auto ahead = static_cast<intptr_t>(ticket) - static_cast<intptr_t>(position);
            if (ahead < 0)
                return false;
            if (ahead > 0) {
                position = m_tail.load(std::memory_order_relaxed);
                continue;
            }
            if (m_tail.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
                cell.value = std::move(value);
                cell.ticket.store(position + 1, std::memory_order_release);
                return true;
            }
        }
    }

    bool pop(T &value)
    {
        size_t position = m_head.load(std::memory_order_relaxed);
        for (;;) {
            Cell &cell = m_cells[position & m_mask];
            const size_t ticket = cell.ticket.load(std::memory_order_acquire);
            const auto ahead = static_cast<intptr_t>(ticket) - static_cast<intptr_t>(position + 1);
            if (ahead < 0)
                return false;
            if (ahead > 0) {
                position = m_head.load(std::memory_order_relaxed);
                continue;
            }
            if (m_head.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
                value = std::move(cell.value);
                cell.ticket.store(position + m_mask + 1, std::memory_order_release);
                return true;
            }
        }
    }

private:
    struct Cell
    {
        std::atomic<size_t> ticket{0};
        T value{};
    };
    const size_t m_mask;
    std::unique_ptr<Cell[]> m_cells;
    alignas(64) std::atomic<size_t> m_tail{0};
    alignas(64) std::atomic<size_t> m_head{0};
};

} // namespace shardscope::collect
