// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"

#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace shardscope::cli {

Output::Output(int fd)
    : m_fd(fd)
    , m_terminal(::isatty(fd) != 0)
{
}

int Output::width() const
{
    winsize size{};
    return ::ioctl(m_fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// False where there is none, or nobody to read any more.
bool Output::roomWithin(int timeoutMs) const
{
    for (;;) {
        pollfd waiting{m_fd, POLLOUT, 0};
        const int ready = ::poll(&waiting, 1, timeoutMs);
        if (ready < 0 && errno == EINTR)
            continue;
        return ready > 0 && (waiting.revents & POLLOUT);
    }
}

/// True where all of it went out. The time is for each part that there is room for.
bool Output::write(std::string_view text, int timeoutMs)
{
    std::string_view rest(text);
    while (!rest.empty() && roomWithin(timeoutMs)) {
        // A pipe that poll() calls writable takes PIPE_BUF bytes without blocking.
        const ssize_t written = ::write(m_fd, rest.data(), std::min<size_t>(rest.size(), 4096));
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return true; // nobody reads any more: nothing to wait for
        if (written > 0)
            rest.remove_prefix(static_cast<size_t>(written));
    }
    if (rest.size() < text.size())
        m_cut = !rest.empty();
    return rest.empty();
}

void Output::progress(std::string_view text)
{
    if (!m_terminal)
        return;
    write("\r" + cutToWidth(text, width() - 1) + "\x1b[K", 0);
    m_progressShown = true;
}

/// After a text that was cut the next one begins in a line of its own.
bool Output::writeLine(std::string_view text, int timeoutMs)
{
    const bool ended = !text.empty() && text.back() == '\n';
    const std::string_view before = m_progressShown ? "\r\x1b[K" : m_cut ? "\n" : "";
    m_progressShown = false;
    return write(fmt::format("{}{}{}", before, text, ended ? "" : "\n"), timeoutMs);
}

void Output::line(std::string_view text)
{
    writeLine(text, 0);
}

void Output::event(std::string_view text)
{
    m_unread = !writeLine(text, m_unread ? 0 : 1000);
}

void Output::result(std::string_view text)
{
    writeLine(text, -1);
}

std::string cutToWidth(std::string_view text, int columns)
{
    size_t end = 0;
    for (int column = 0; end < text.size() && column < columns; ++column) {
        ++end;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
            ++end;
    }
    return std::string(text.substr(0, end));
}

} // namespace shardscope::cli
