// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

namespace shardscope::worker {

/// SIGINT and SIGTERM of a rank without a supervisor: until all ranks have joined there is nothing to keep, and they
/// end the process at once; then the first asks for a stop with a checkpoint, and a second SIGINT ends at once. SIGHUP
/// is ignored: a closed terminal stops no run. Make it before any other thread, which then inherits the blocked
/// signals.
class SignalWatch
{
public:
    SignalWatch();
    ~SignalWatch();
    SignalWatch(const SignalWatch &) = delete;
    SignalWatch &operator=(const SignalWatch &) = delete;

    /// From now on steps come, after which the ranks can stop.
    void ranksHaveJoined() { m_joined = true; }
    bool stopAsked() const { return m_stop.load(std::memory_order_relaxed); }
    /// The stop came from a keyboard.
    bool interrupted() const { return m_interrupted.load(std::memory_order_relaxed); }

    static constexpr int kInterruptedExitCode = 130;
    static constexpr int kTerminatedExitCode = 143; ///< as a shell tells of SIGTERM

private:
    void watch();

    int m_signalFd;
    int m_endFd;
    std::atomic<bool> m_joined{false};
    std::atomic<bool> m_stop{false};
    std::atomic<bool> m_interrupted{false};
    std::thread m_thread;
};

} // namespace shardscope::worker
