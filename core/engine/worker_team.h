// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shardscope::engine {

/// Threads that share the pieces of one piece of work. OpenMP's would take turns with those of the computation.
class WorkerTeam
{
public:
    /// The caller of run() is one of the threads.
    WorkerTeam(int threads, const char *name);
    ~WorkerTeam();

    int threads() const { return static_cast<int>(m_threads.size()) + 1; }
    /// Calls work(0) … work(pieces − 1), each once, and returns when all are done. Throws what one of them threw. One
    /// caller at a time.
    void run(int64_t pieces, const std::function<void(int64_t)> &work);

private:
    void loop();
    void takePieces(std::unique_lock<std::mutex> &lock);

    std::mutex m_mutex;
    std::condition_variable m_changed;
    const std::function<void(int64_t)> *m_work = nullptr;
    int64_t m_pieces = 0;
    int64_t m_next = 0;
    int64_t m_running = 0;
    std::exception_ptr m_error;
    bool m_stopping = false;
    std::vector<std::thread> m_threads; ///< last: they use the others
};

} // namespace shardscope::engine
