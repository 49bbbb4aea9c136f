// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/control/line_splitter.h"
#include "core/control/rank_messages.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shardscope::control {

/// A rank's end of the socket to its supervisor. A thread of its own reads and writes: no call blocks the step, and a
/// supervisor that doesn't read costs step messages (the oldest go first), never time. Without a supervisor (torchrun,
/// mpirun) the channel is inert: send() does nothing, poll() has nothing.
class RankChannel
{
public:
    /// Takes over the fd in SHARDSCOPE_CONTROL_FD (close-on-exec is set) and removes the variable; inert without it.
    /// onSupervisorGone is called once, from the channel's thread, when the supervisor has died: a worker ends the
    /// process there with kSupervisorGoneExitCode (endProcess()), because nobody is left to end it.
    static std::unique_ptr<RankChannel> fromEnvironment(std::function<void()> onSupervisorGone = endProcess);
    /// Takes over fd; -1 makes an inert channel.
    RankChannel(int fd, std::function<void()> onSupervisorGone);
    /// Sends what is queued, for at most a second, and ends the thread.
    ~RankChannel();
    RankChannel(const RankChannel &) = delete;
    RankChannel &operator=(const RankChannel &) = delete;

    bool hasSupervisor() const { return m_fd >= 0; }

    /// Queues a message. Never blocks.
    void send(const RankMessage &message);
    /// The next order, or nothing. Rank 0 asks once a step; the other ranks need not.
    std::optional<Order> poll();
    /// The change of that number, which the supervisor sent to all ranks before rank 0 was told to set it; waits where
    /// it is still on its way. Once: it and those before it are forgotten. Nothing where the supervisor has died, or
    /// where there is none.
    std::optional<ConfigurationChange> waitForChange(int64_t number);
    /// For a rank that pauses after `step` steps: says `paused` and sleeps until a command comes. Unpause (which says
    /// `running`) means go on. Checkpoint means write one and call this again, Set likewise. Stop means checkpoint and
    /// end; it is also the answer where the supervisor has died. Without a supervisor there is nothing to wait for:
    /// Unpause.
    Order waitWhilePaused(int64_t step);
    /// Waits until everything queued is sent, at most timeoutMs. True where it was.
    bool flush(int timeoutMs);

    static constexpr int kSupervisorGoneExitCode = 70;
    [[noreturn]] static void endProcess();

private:
    struct Outgoing
    {
        std::string line; ///< with its newline
        bool droppable = false;
    };
    void serve();
    /// False at the end of the stream.
    bool readCommands();
    bool writeQueued();
    void wake();
    bool waitForEvents(bool wantsToWrite, int timeoutMs);
    void declareGone();

    int m_fd = -1;
    int m_wakeFd = -1;
    std::function<void()> m_onSupervisorGone;
    LineSplitter m_lines;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Outgoing> m_outgoing;
    size_t m_sentOfFirst = 0; ///< bytes of m_outgoing.front() that are on their way already
    std::deque<Order> m_commands;
    std::map<int64_t, ConfigurationChange> m_changes; ///< by number
    bool m_ending = false;
    bool m_gone = false;
    std::thread m_thread;
};

} // namespace shardscope::control
