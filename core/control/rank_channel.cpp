// SPDX-License-Identifier: Apache-2.0
#include "core/control/rank_channel.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace shardscope::control {

/// Step messages beyond this wait for a supervisor that doesn't read: it has stopped, and the newest are worth most.
static constexpr size_t kMostWaitingMessages = 1000;
/// Between two looks at what is to be sent, where there was no descriptor left to be woken by.
static constexpr int kLookMs = 100;
static constexpr auto kFarewell = std::chrono::seconds(1);

/// The fd that the supervisor handed over; -1 where the variable is unset or names none.
static int takeInheritedFd()
{
    const char *text = std::getenv("SHARDSCOPE_CONTROL_FD");
    if (!text)
        return -1;
    int fd = -1;
    const char *end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, fd);
    const bool valid = error == std::errc{} && rest == end && fd > STDERR_FILENO && ::fcntl(fd, F_GETFD) >= 0;
    ::unsetenv("SHARDSCOPE_CONTROL_FD");
    return valid ? fd : -1;
}

std::unique_ptr<RankChannel> RankChannel::fromEnvironment(std::function<void()> onSupervisorGone)
{
    return std::make_unique<RankChannel>(takeInheritedFd(), std::move(onSupervisorGone));
}

RankChannel::RankChannel(int fd, std::function<void()> onSupervisorGone)
    : m_fd(fd)
    , m_onSupervisorGone(std::move(onSupervisorGone))
{
    if (m_fd < 0)
        return;
    ::fcntl(m_fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(m_fd, F_SETFL, ::fcntl(m_fd, F_GETFL) | O_NONBLOCK);
    m_wakeFd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    // Signals are for the threads that asked for them: the channel's thread starts with all of them blocked.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m_thread = std::thread([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RankChannel::~RankChannel()
{
    if (m_fd < 0)
        return;
    {
        const std::lock_guard lock(m_mutex);
        m_ending = true;
    }
    wake();
    m_thread.join();
    ::close(m_fd);
    if (m_wakeFd >= 0)
        ::close(m_wakeFd);
}

void RankChannel::endProcess()
{
    ::_exit(kSupervisorGoneExitCode);
}

void RankChannel::wake()
{
    const uint64_t one = 1;
    // The counter is full only when the thread has been woken already. Without one the thread looks by itself.
    [[maybe_unused]] const ssize_t written = ::write(m_wakeFd, &one, sizeof one);
}

void RankChannel::send(const RankMessage &message)
{
    if (m_fd < 0)
        return;
    {
        const std::lock_guard lock(m_mutex);
        if (m_gone)
            return;
        if (m_outgoing.size() >= kMostWaitingMessages) {
            // Never the first one: half of it may be on its way.
            const auto oldest = std::find_if(m_outgoing.begin() + 1, m_outgoing.end(),
                                             [](const Outgoing &outgoing) { return outgoing.droppable; });
            if (oldest != m_outgoing.end())
                m_outgoing.erase(oldest);
        }
        m_outgoing.push_back({toLine(message) + "\n", std::holds_alternative<StepMessage>(message)});
    }
    wake();
}

std::optional<Order> RankChannel::poll()
{
    const std::lock_guard lock(m_mutex);
    if (m_commands.empty())
        return std::nullopt;
    const Order order = m_commands.front();
    m_commands.pop_front();
    return order;
}

std::optional<ConfigurationChange> RankChannel::waitForChange(int64_t number)
{
    if (m_fd < 0)
        return std::nullopt;
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_changes.contains(number) || m_gone; });
    const auto found = m_changes.find(number);
    if (found == m_changes.end())
        return std::nullopt;
    ConfigurationChange change = std::move(found->second);
    m_changes.erase(m_changes.begin(), std::next(found));
    return change;
}

Order RankChannel::waitWhilePaused(int64_t step)
{
    if (m_fd < 0)
        return Command::Unpause;
    send(PausedMessage{step});
    std::optional<Order> order;
    {
        std::unique_lock lock(m_mutex);
        for (;;) {
            m_changed.wait(lock, [this] { return !m_commands.empty() || m_gone; });
            if (m_commands.empty())
                return Command::Stop;
            order = m_commands.front();
            m_commands.pop_front();
            if (order->command != Command::Pause) // it is paused already
                break;
        }
    }
    if (order->command == Command::Unpause)
        send(RunningMessage{step});
    return *order;
}

bool RankChannel::flush(int timeoutMs)
{
    if (m_fd < 0)
        return true;
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, std::chrono::milliseconds(timeoutMs), [this] {
        return m_outgoing.empty() || m_gone;
    }) && m_outgoing.empty();
}

/// True where the socket has something to read, its end included.
bool RankChannel::waitForEvents(bool wantsToWrite, int timeoutMs)
{
    pollfd fds[2] = {{m_fd, static_cast<short>(POLLIN | (wantsToWrite ? POLLOUT : 0)), 0}, {m_wakeFd, POLLIN, 0}};
    if (::poll(fds, 2, timeoutMs) < 0)
        return false;
    if (fds[1].revents & POLLIN) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = ::read(m_wakeFd, &count, sizeof count);
    }
    return (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

void RankChannel::serve()
{
    std::optional<std::chrono::steady_clock::time_point> deadline;
    for (;;) {
        bool waiting = false;
        bool ending = false;
        {
            const std::lock_guard lock(m_mutex);
            waiting = !m_outgoing.empty();
            ending = m_ending;
        }
        if (ending) {
            const auto now = std::chrono::steady_clock::now();
            deadline = deadline.value_or(now + kFarewell);
            if (!waiting || now >= *deadline)
                return;
        }
        const bool readable = waitForEvents(waiting, ending ? 50 : m_wakeFd < 0 ? kLookMs : -1);
        if ((readable && !readCommands()) || !writeQueued()) {
            declareGone();
            return;
        }
    }
}

void RankChannel::declareGone()
{
    bool ending = false;
    {
        const std::lock_guard lock(m_mutex);
        m_gone = true;
        ending = m_ending;
    }
    m_changed.notify_all();
    if (!ending && m_onSupervisorGone)
        m_onSupervisorGone();
}

bool RankChannel::readCommands()
{
    char bytes[4096];
    for (;;) {
        const ssize_t got = ::read(m_fd, bytes, sizeof bytes);
        if (got == 0)
            return false;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        for (const std::string &line : m_lines.add({bytes, static_cast<size_t>(got)})) {
            // A line that is no command comes from a newer supervisor; what this rank can't do it leaves.
            const auto read = orderFromLine(line);
            if (!read)
                continue;
            const std::lock_guard lock(m_mutex);
            if (const auto *order = std::get_if<Order>(&*read))
                m_commands.push_back(*order);
            else
                m_changes.insert_or_assign(std::get<ConfigurationChange>(*read).number,
                                           std::get<ConfigurationChange>(*read));
        }
        m_changed.notify_all();
    }
}

bool RankChannel::writeQueued()
{
    const std::lock_guard lock(m_mutex);
    while (!m_outgoing.empty()) {
        const std::string &line = m_outgoing.front().line;
        const ssize_t sent =
            ::send(m_fd, line.data() + m_sentOfFirst, line.size() - m_sentOfFirst, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        m_sentOfFirst += static_cast<size_t>(sent);
        if (m_sentOfFirst == line.size()) {
            m_outgoing.pop_front();
            m_sentOfFirst = 0;
        }
    }
    m_changed.notify_all();
    return true;
}

} // namespace shardscope::control
