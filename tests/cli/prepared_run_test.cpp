// SPDX-License-Identifier: Apache-2.0
// The making of a run, each in a process of its own: it changes signals and environment.
#include "app/cli/prepared_run.h"

#include "core/launch/environment.h"
#include "tests/cli/fake_rank_command_line.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace shardscope;

/// As on a file system without locks.
static bool lockingFails = false;

extern "C" int flock(int fd, int operation) noexcept
{
    if (!lockingFails)
        return static_cast<int>(::syscall(SYS_flock, fd, operation));
    errno = ENOLCK;
    return -1;
}

static Result<cli::PreparedRun> prepare(const test::FakeRankCommandLine &cli, const char *preset = "tiny")
{
    for (const auto &[name, value] : cli.variables())
        ::setenv(name.c_str(), value.c_str(), 1);
    cli::RunOptions options;
    options.keys = {{"model.preset", preset},
                    {"data.path", cli.data().string()},
                    {"parallel.ranks", "2"},
                    {"parallel.device", "cpu"},
                    {"run.name", "a"}};
    return cli::prepareRun(options, {"shardscope-cli", "run"}, launch::processEnvironment());
}

/// The work's result; minus the signal that ended it.
static int inAChild(const std::function<int()> &work)
{
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(work());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(PrepareRun, leavesNoSignalToEndWhatIsHalfMade)
{
    test::FakeRankCommandLine cli;
    const int code = inAChild([&cli] {
        if (!prepare(cli))
            return 1;
        for (const int signal : {SIGHUP, SIGTERM, SIGINT})
            ::raise(signal);
        sigset_t waiting;
        ::sigpending(&waiting);
        return sigismember(&waiting, SIGTERM) == 1 && sigismember(&waiting, SIGINT) == 1 ? 0 : 2;
    });
    EXPECT_EQ(code, 0) << "they wait for the supervisor";
}

TEST(PrepareRun, saysWhereBytesUseLittleOfTheVocabulary)
{
    test::FakeRankCommandLine cli;
    const int code = inAChild([&cli] {
        const auto prepared = prepare(cli, "15m");
        return prepared && std::ranges::any_of(prepared->notes,
                                               [](const std::string &note) {
                                                   return note.find("256 of the 32000 ids") != std::string::npos;
                                               })
                   ? 0
                   : 1;
    });
    EXPECT_EQ(code, 0);
}

TEST(PrepareRun, leavesNothingWhereTheRunCannotBeLocked)
{
    test::FakeRankCommandLine cli;
    const int code = inAChild([&cli] {
        lockingFails = true;
        const auto prepared = prepare(cli);
        return !prepared && prepared.error().text.find("file system with locks") != std::string::npos ? 0 : 1;
    });
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(std::filesystem::is_empty(cli.runs()));
}
