// SPDX-License-Identifier: Apache-2.0
// What a person at a terminal sees, and a terminal that is closed in the middle.
#include "tests/cli/fake_rank_command_line.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>
#include <utility>

using namespace shardscope;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

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
        return test::eventually([&] { return read().find(text) != std::string::npos; });
    }
    int slave = -1;

private:
    int m_master = -1;
    std::string m_text;
};

TEST(OnATerminal, aLiveLineShowsProgressAndControlCStops)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 100'000);
    Terminal terminal;
    test::Program program = cli.start(cli.runArguments("a"), terminal.slave);
    terminal.closeSlave();
    EXPECT_TRUE(terminal.shows("step 3/100000")) << terminal.read();
    EXPECT_THAT(terminal.read(), AllOf(HasSubstr("\r["), HasSubstr("\x1b[K"), HasSubstr("left")));
    terminal.type('\x03'); // the terminal makes SIGINT of it, for the whole foreground: ranks must not hear it
    EXPECT_TRUE(terminal.shows("Finishing the step"));
    EXPECT_TRUE(terminal.shows("Checkpoint of step")) << terminal.read();
    EXPECT_EQ(program.wait().exitCode, 130);
}

TEST(OnATerminal, closedInTheMiddleTheRunGoesOn)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 150);
    Terminal terminal;
    test::Program program = cli.start(cli.runArguments("a"), terminal.slave);
    terminal.closeSlave();
    ASSERT_TRUE(terminal.shows("step 2/150"));
    terminal.close();
    EXPECT_EQ(program.wait().exitCode, 0);
    const auto status = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(status.state, RunState::Done);
    EXPECT_EQ(status.step, 150);
}

TEST(OnATerminal, nobodyReadsAndTheRunGoesOn)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 2000, 0);
    Terminal terminal; // never read: its buffer fills
    test::Program program = cli.start(cli.runArguments("a"), terminal.slave);
    terminal.closeSlave();
    cli.waitFor("a", [](const auto &status) { return status.state == RunState::Done; });
    terminal.read();
    EXPECT_EQ(program.wait().exitCode, 0);
}
