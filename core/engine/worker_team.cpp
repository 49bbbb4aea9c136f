// SPDX-License-Identifier: Apache-2.0
#include "core/engine/worker_team.h"

#include <pthread.h>
#include <utility>

namespace shardscope::engine {

WorkerTeam::WorkerTeam(int threads, const char *name)
{
    for (int i = 1; i < threads; ++i) {
        m_threads.emplace_back([this] { loop(); });
        pthread_setname_np(m_threads.back().native_handle(), name);
    }
}

WorkerTeam::~WorkerTeam()
{
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_changed.notify_all();
    for (std::thread &thread : m_threads)
        thread.join();
}

void WorkerTeam::run(int64_t pieces, const std::function<void(int64_t)> &work)
{
    std::unique_lock lock(m_mutex);
    m_work = &work;
    m_pieces = pieces;
    m_next = 0;
    m_changed.notify_all();
    takePieces(lock);
    m_changed.wait(lock, [this] { return m_running == 0; });
    m_pieces = m_next = 0;
    if (const std::exception_ptr error = std::exchange(m_error, nullptr))
        std::rethrow_exception(error);
}

void WorkerTeam::takePieces(std::unique_lock<std::mutex> &lock)
{
    while (m_next < m_pieces) {
        const int64_t piece = m_next++;
        ++m_running;
        lock.unlock();
        std::exception_ptr error;
        try {
            (*m_work)(piece);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        --m_running;
        if (error && !m_error) {
            m_error = error;
            m_next = m_pieces; // the rest is of no use
        }
    }
    m_changed.notify_all();
}

void WorkerTeam::loop()
{
    std::unique_lock lock(m_mutex);
    while (true) {
        m_changed.wait(lock, [this] { return m_stopping || m_next < m_pieces; });
        if (m_stopping)
            return;
        takePieces(lock);
    }
}

} // namespace shardscope::engine
