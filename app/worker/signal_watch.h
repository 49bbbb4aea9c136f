// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

namespace shardscope::worker {

/// SIGINT and SIGTERM of a rank without a supervisor: the first asks for a stop with a checkpoint, a second SIGINT ends
/// the process at once. SIGHUP is ignored: a closed terminal stops no run. Make it before any other thread, which then
/// inherits the blocked signals.
class SignalWatch
{
public:
    SignalWatch();
    ~SignalWatch();
    SignalWatch(const SignalWatch &) = delete;
    SignalWatch &operator=(const SignalWatch &) = delete;

    bool stopAsked() const { return m_stop.load(std::memory_order_relaxed); }
    /// The stop came from a keyboard.
    bool interrupted() const { return m_interrupted.load(std::memory_order_relaxed); }

    static constexpr int kInterruptedExitCode = 130;

private:
    void watch();

    int m_signalFd;
    int m_endFd;
    std::atomic<bool> m_stop{false};
    std::atomic<bool> m_interrupted{false};
    std::thread m_thread;
};

} // namespace shardscope::worker
