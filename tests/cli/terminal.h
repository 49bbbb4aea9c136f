// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace shardscope::test {

/// A terminal of 120 columns.
class Terminal
{
public:
    Terminal()
    {
        const winsize size{40, 120, 0, 0};
        EXPECT_EQ(::openpty(&m_master, &slave, nullptr, nullptr, &size), 0);
        ::fcntl(m_master, F_SETFD, FD_CLOEXEC);
        ::fcntl(m_master, F_SETFL, O_NONBLOCK);
    }
    ~Terminal()
    {
        closeSlave();
        close();
    }
    void closeSlave()
    {
        if (slave >= 0)
            ::close(std::exchange(slave, -1));
    }
    /// What closing a terminal window does: SIGHUP, and errors for those who write to it.
    void close()
    {
        if (m_master >= 0)
            ::close(std::exchange(m_master, -1));
    }
    void type(char key) { EXPECT_EQ(::write(m_master, &key, 1), 1); }
    /// All that was written so far.
    const std::string &read()
    {
        char bytes[4096];
        for (ssize_t got; (got = ::read(m_master, bytes, sizeof bytes)) > 0;)
            m_text.append(bytes, static_cast<size_t>(got));
        return m_text;
    }
    bool shows(const std::string &text)
    {
        return eventually([&] { return read().find(text) != std::string::npos; });
    }
    int slave = -1;

private:
    int m_master = -1;
    std::string m_text;
};

} // namespace shardscope::test
