// SPDX-License-Identifier: Apache-2.0
#include "core/data/helper_process.h"

#include "core/data/data_progress.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char **environ;

namespace shardscope::data {

namespace {

constexpr int kPollMs = 200;
constexpr size_t kLongestLine = 1024 * 1024;
constexpr off_t kErrorTailBytes = 600; ///< of what the child wrote to standard error

/// The attributes and file actions of posix_spawn, freed in any case.
class SpawnSettings
{
public:
    SpawnSettings(int input, int errors)
    {
        posix_spawn_file_actions_init(&m_actions);
        posix_spawn_file_actions_adddup2(&m_actions, input, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&m_actions, input, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&m_actions, errors, STDERR_FILENO);
        posix_spawnattr_init(&m_attributes);
        sigset_t none;
        sigset_t all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&m_attributes, &none); // a worker's threads block some
        posix_spawnattr_setsigdefault(&m_attributes, &all);
        posix_spawnattr_setpgroup(&m_attributes, 0);
        posix_spawnattr_setflags(&m_attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    ~SpawnSettings()
    {
        posix_spawn_file_actions_destroy(&m_actions);
        posix_spawnattr_destroy(&m_attributes);
    }
    SpawnSettings(const SpawnSettings &) = delete;
    SpawnSettings &operator=(const SpawnSettings &) = delete;
    int start(pid_t &pid, char *const *arguments) const
    {
        return ::posix_spawnp(&pid, arguments[0], &m_actions, &m_attributes, arguments, environ);
    }

private:
    posix_spawn_file_actions_t m_actions;
    posix_spawnattr_t m_attributes;
};

} // namespace

Result<HelperProcess> HelperProcess::start(const std::vector<std::string> &command)
{
    HelperProcess process;
    process.m_program = command.front();
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return fail("Can't start {}: {}.", command.front(), std::strerror(errno));
    process.m_socket = sockets[0];
    process.m_errors = ::memfd_create("errors", MFD_CLOEXEC);
    std::vector<char *> arguments;
    for (const std::string &word : command)
        arguments.push_back(const_cast<char *>(word.c_str())); // posix_spawn doesn't write to them
    arguments.push_back(nullptr);
    const int error = process.m_errors < 0
                          ? errno
                          : SpawnSettings(sockets[1], process.m_errors).start(process.m_pid, arguments.data());
    ::close(sockets[1]);
    if (error) {
        process.m_pid = -1;
        return fail("Can't start {}: {}.", command.front(), std::strerror(error));
    }
    return process;
}

HelperProcess::HelperProcess(HelperProcess &&other) noexcept
    : m_program(std::move(other.m_program))
    , m_pid(std::exchange(other.m_pid, -1))
    , m_socket(std::exchange(other.m_socket, -1))
    , m_errors(std::exchange(other.m_errors, -1))
{
}

HelperProcess &HelperProcess::operator=(HelperProcess &&other) noexcept
{
    std::swap(m_program, other.m_program);
    std::swap(m_pid, other.m_pid);
    std::swap(m_socket, other.m_socket);
    std::swap(m_errors, other.m_errors);
    return *this;
}

HelperProcess::~HelperProcess()
{
    end();
}

void HelperProcess::end()
{
    if (m_socket >= 0)
        ::close(std::exchange(m_socket, -1));
    if (m_pid > 0) {
        ::kill(m_pid, SIGKILL); // it holds nothing that could be lost
        while (::waitpid(m_pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        m_pid = -1;
    }
    if (m_errors >= 0)
        ::close(std::exchange(m_errors, -1));
}

/// Its last words, as the reason.
tl::unexpected<Error> HelperProcess::ended()
{
    const off_t size = ::lseek(m_errors, 0, SEEK_END);
    std::string words(static_cast<size_t>(std::min(std::max<off_t>(size, 0), kErrorTailBytes)), '\0');
    const ssize_t got =
        ::pread(m_errors, words.data(), words.size(), std::max<off_t>(0, size - static_cast<off_t>(words.size())));
    words.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    while (!words.empty() && words.back() == '\n')
        words.pop_back();
    return fail("{} ended unexpectedly{}", m_program, words.empty() ? "." : ": " + words);
}

Result<> HelperProcess::waitFor(short events, const std::function<bool()> &isCancelled)
{
    for (;;) {
        pollfd waiting{m_socket, events, 0};
        const int ready = ::poll(&waiting, 1, kPollMs);
        if (isCancelled && isCancelled())
            return fail("{}", kCancelled);
        if (ready > 0)
            return {};
        if (ready < 0 && errno != EINTR)
            return fail("Can't wait for {}: {}.", m_program, std::strerror(errno));
    }
}

Result<> HelperProcess::send(std::span<const std::byte> bytes, const std::function<bool()> &isCancelled)
{
    while (!bytes.empty()) {
        if (auto ready = waitFor(POLLOUT, isCancelled); !ready)
            return ready;
        const ssize_t sent = ::send(m_socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            return ended();
        if (sent > 0)
            bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return {};
}

Result<> HelperProcess::receive(std::span<std::byte> bytes, const std::function<bool()> &isCancelled)
{
    while (!bytes.empty()) {
        if (auto ready = waitFor(POLLIN, isCancelled); !ready)
            return ready;
        const ssize_t got = ::recv(m_socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return ended();
        if (got > 0)
            bytes = bytes.subspan(static_cast<size_t>(got));
    }
    return {};
}

Result<std::string> HelperProcess::receiveLine(const std::function<bool()> &isCancelled)
{
    std::string line;
    std::array<char, 4096> seen;
    while (line.size() < kLongestLine) {
        if (auto ready = waitFor(POLLIN, isCancelled); !ready)
            return tl::unexpected(ready.error());
        // What follows the line stays where it is, for the next call.
        const ssize_t got = ::recv(m_socket, seen.data(), seen.size(), MSG_DONTWAIT | MSG_PEEK);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return ended();
        const std::string_view text(seen.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
        const size_t end = text.find('\n');
        const size_t taken = std::min(end, text.size());
        line += text.substr(0, taken);
        if (::recv(m_socket, seen.data(), end < text.size() ? taken + 1 : taken, MSG_DONTWAIT) < 0 && errno != EAGAIN)
            return ended();
        if (end < text.size())
            return line;
    }
    return fail("{} wrote what is no answer.", m_program);
}

} // namespace shardscope::data
