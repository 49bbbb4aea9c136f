// SPDX-License-Identifier: Apache-2.0
// What a person at a terminal sees, and a terminal that is closed in the middle.
#include "tests/cli/fake_rank_command_line.h"
#include "tests/cli/terminal.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace shardscope;
using testing::AllOf;
using testing::HasSubstr;

TEST(OnATerminal, aLiveLineShowsProgressAndControlCStops)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 100'000);
    test::Terminal terminal;
    test::Program program = cli.start(cli.runArguments("a"), terminal.slave);
    terminal.closeSlave();
    EXPECT_TRUE(terminal.shows("step 3/100000")) << terminal.read();
    EXPECT_THAT(terminal.read(), AllOf(HasSubstr("\r["), HasSubstr("\x1b[K"), HasSubstr("left")));
    terminal.type('\x03'); // the terminal makes SIGINT of it, for the whole foreground: ranks must not hear it
    EXPECT_TRUE(terminal.shows("Stopping one or two steps on"));
    EXPECT_TRUE(terminal.shows("Checkpoint of step")) << terminal.read();
    EXPECT_EQ(program.wait().exitCode, 130);
}

TEST(OnATerminal, closedInTheMiddleTheRunGoesOn)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 150);
    test::Terminal terminal;
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
    test::Terminal terminal; // never read: its buffer fills
    test::Program program = cli.start(cli.runArguments("a"), terminal.slave);
    terminal.closeSlave();
    cli.waitFor("a", [](const auto &status) { return status.state == RunState::Done; });
    terminal.read();
    EXPECT_EQ(program.wait().exitCode, 0);
}

TEST(IntoAPipe, nobodyReadsLinesOfJsonAndTheRunGoesOn)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 500, 0);
    const std::string path = (cli.folder() / "pipe").string();
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const int pipe = ::open(path.c_str(), O_RDWR | O_CLOEXEC); // never read: a wait for each event would take minutes
    ASSERT_GE(pipe, 0);
    test::Program program = cli.startThrough({"/bin/sh", "-c", R"(exec "$@" >"$HOME/pipe")", "sh"},
                                             cli.runArguments("a", {"--format", "json"}));
    cli.waitFor("a", [](const auto &status) { return status.state == RunState::Done; });
    EXPECT_EQ(program.wait().exitCode, 0);
    ::close(pipe);
}
