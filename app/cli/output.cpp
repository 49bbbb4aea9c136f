// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"

#include <cerrno>
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

bool Output::roomWithin(int timeoutMs) const
{
    pollfd waiting{m_fd, POLLOUT, 0};
    return ::poll(&waiting, 1, timeoutMs) > 0 && (waiting.revents & POLLOUT);
}

void Output::write(std::string text, int timeoutMs)
{
    std::string_view rest(text);
    while (!rest.empty() && roomWithin(timeoutMs)) {
        // A pipe that poll() calls writable takes PIPE_BUF bytes without blocking.
        const ssize_t written = ::write(m_fd, rest.data(), std::min<size_t>(rest.size(), 4096));
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0)
            rest.remove_prefix(static_cast<size_t>(written));
    }
}

void Output::progress(std::string_view text)
{
    if (!m_terminal)
        return;
    write("\r" + cutToWidth(text, width() - 1) + "\x1b[K", 0);
    m_progressShown = true;
}

void Output::line(std::string_view text)
{
    write((m_progressShown ? "\r\x1b[K" : "") + std::string(text) + "\n", 0);
    m_progressShown = false;
}

void Output::result(std::string_view text)
{
    const bool ended = !text.empty() && text.back() == '\n';
    write((m_progressShown ? "\r\x1b[K" : "") + std::string(text) + (ended ? "" : "\n"), 1000);
    m_progressShown = false;
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
