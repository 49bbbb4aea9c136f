// SPDX-License-Identifier: Apache-2.0
// Which checkpoint a run goes on from, and two that want to go on with the same run.
#include "app/cli/status_text.h"
#include "core/base/file.h"
#include "core/run/run_lock.h"
#include "tests/cli/fake_rank_command_line.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <thread>

namespace fs = std::filesystem;
using namespace shardscope;
using testing::AllOf;
using testing::HasSubstr;

class Resume : public testing::Test
{
protected:
    /// The run "a", stopped with a checkpoint; returns its step.
    int64_t leaveARun()
    {
        cli.ranksDo("", 100'000);
        test::Program program = cli.start(cli.runArguments("a", {"--steps", "100000"}));
        cli.waitFor("a", [](const auto &status) { return status.state == RunState::Running && status.step > 1; });
        program.signal(SIGINT);
        EXPECT_EQ(program.wait().exitCode, 130);
        cli.ranksDo("", 3);
        return cli.newestCheckpoint("a").value().step;
    }
    static bool hasOpen(pid_t pid, const fs::path &file)
    {
        std::error_code error;
        for (const auto &entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
            if (fs::read_symlink(entry.path(), error) == file)
                return true;
        }
        return false;
    }
    test::FakeRankCommandLine cli;
};

TEST_F(Resume, isAdvisedOfALostRunOnlyWhereThereIsACheckpoint)
{
    leaveARun();
    run::RunSummary lost{cli.runFolder("a"), {}, {}, {}};
    lost.status.state = RunState::Lost;
    EXPECT_THAT(shardscope::cli::describe(lost), HasSubstr("Go on with: shardscope-cli run --resume"));
    fs::remove_all(lost.folder.checkpointsFolder());
    EXPECT_THAT(shardscope::cli::describe(lost),
                AllOf(HasSubstr("without a checkpoint"), testing::Not(HasSubstr("--resume"))));
}

TEST_F(Resume, goesOnAtOnceAfterAStop)
{
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a", {"--steps", "100000"}));
    cli.waitFor("a", [](const auto &status) { return status.state == RunState::Running && status.step > 1; });
    const test::Finished stopped = cli.run({"stop", "a"});
    EXPECT_EQ(stopped.exitCode, 0) << stopped.errors;
    EXPECT_THAT(stopped.out, HasSubstr("Go on with: shardscope-cli run --resume \"a\""));
    cli.ranksDo("", 3);
    const test::Finished resumed = cli.run({"run", "--resume", "a"});
    EXPECT_EQ(resumed.exitCode, 0) << resumed.errors;
    EXPECT_EQ(program.wait().exitCode, 0);
    const test::Finished ends =
        cli.run({"sql", "a", "select attempt from process where rank is null and ended_ns is not null order by 1"});
    EXPECT_THAT(ends.out, AllOf(HasSubstr("1"), HasSubstr("2"))) << ends.errors;
}

TEST_F(Resume, saysHowManyStepsAreDone)
{
    const int64_t step = leaveARun();
    const auto refusal = [this](int64_t steps) {
        const test::Finished finished = cli.run({"run", "--resume", "a", "--steps", std::to_string(steps)});
        EXPECT_EQ(finished.exitCode, 2);
        return finished.errors;
    };
    EXPECT_THAT(refusal(step), HasSubstr(fmt::format("has done all of its {} steps", step)));
    EXPECT_THAT(refusal(step - 1), AllOf(HasSubstr(fmt::format("its checkpoint of step {}", step)),
                                         HasSubstr(fmt::format("end after step {}", step - 1)),
                                         HasSubstr(fmt::format("more than {} with --steps", step))));
    EXPECT_FALSE(fs::exists(cli.runFolder("a").attemptFolder(2)));
}

TEST_F(Resume, waitsForTheLockOfARunThatHasEnded)
{
    leaveARun();
    std::optional<run::RunLock> lock = run::RunLock::acquire(cli.runFolder("a")).value();
    test::Program program = cli.start({"run", "--resume", "a"});
    std::this_thread::sleep_for(std::chrono::milliseconds(500)); // by now it has found the lock taken
    lock.reset();
    const test::Finished resumed = program.wait();
    EXPECT_EQ(resumed.exitCode, 0) << resumed.errors;
}

TEST_F(Resume, takesNothingOverFromAnAttemptThatDidNoStep)
{
    leaveARun();
    const std::vector<std::string> asked = {"run", "--resume", "a", "--set", "optimizer.clip_norm=7"};
    const auto clipNorm = [this](int attempt) -> double {
        const auto all = nlohmann::json::parse(readTextFile(cli.runFolder("a").configFile(attempt)).value());
        return all["optimizer"]["clip_norm"];
    };
    cli.ranksDo("rank=1 fail@0=it_does_not_fit", 3);
    EXPECT_EQ(cli.run(asked).exitCode, 1);
    cli.ranksDo("", 3);
    EXPECT_EQ(cli.run({"run", "--resume", "a"}).exitCode, 0);
    EXPECT_EQ(clipNorm(3), 1) << "attempt 2 was refused";
    EXPECT_EQ(cli.run(asked).exitCode, 0);
    EXPECT_EQ(cli.run({"run", "--resume", "a"}).exitCode, 0);
    EXPECT_EQ(clipNorm(5), 7) << "attempt 4 has trained with it";
}

TEST_F(Resume, whoComesSecondLeavesTheOthersAttemptAlone)
{
    leaveARun();
    const run::RunFolder folder = cli.runFolder("a");
    // It has found the run free, and then waits for its configuration: a pipe.
    const fs::path pipe = cli.folder() / "slow.toml";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    test::Program second = cli.start({"run", pipe.string(), "--resume", "a"});
    {
        std::ofstream writer(pipe); // waits until it reads
        const auto lock = run::RunLock::acquire(folder);
        ASSERT_TRUE(lock) << lock.error().text;
        writer.close();
        ASSERT_TRUE(test::eventually([&] { return hasOpen(second.pid(), folder.lockFile()); }));
        ASSERT_TRUE(folder.createAttempt(2));
        const test::Finished finished = second.wait();
        EXPECT_EQ(finished.exitCode, 2);
        EXPECT_THAT(finished.errors, HasSubstr("going on already"));
    }
    EXPECT_TRUE(fs::exists(folder.logsFolder(2)));
}

TEST_F(Resume, ofManyAtOnceEachThatGoesOnHasAnAttemptOfItsOwn)
{
    leaveARun();
    std::vector<test::Program> programs;
    for (int i = 0; i < 4; ++i)
        programs.push_back(cli.start({"run", "--resume", "a"}));
    int wentOn = 0;
    for (test::Program &program : programs) {
        const test::Finished finished = program.wait();
        wentOn += finished.exitCode == 0;
        EXPECT_THAT(finished.exitCode, testing::AnyOf(0, 2)) << finished.errors;
    }
    EXPECT_GE(wentOn, 1);
    const run::RunFolder folder = cli.runFolder("a");
    EXPECT_EQ(folder.lastAttempt(), 1 + wentOn);
    for (int attempt = 2; attempt <= 1 + wentOn; ++attempt)
        EXPECT_TRUE(fs::exists(folder.configFile(attempt)) && fs::exists(folder.logFile(attempt, 1))) << attempt;
}

TEST_F(Resume, aDamagedCheckpointIsLeftOutAndSaid)
{
    const int64_t step = leaveARun();
    const run::RunFolder folder = cli.runFolder("a");
    const fs::path damaged = folder.checkpointsFolder() / "step-099999";
    fs::create_directories(damaged);
    ASSERT_TRUE(writeFileAtomically(damaged / "manifest.json", "{}"));
    const test::Finished finished = cli.run({"run", "--resume", "a"});
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_THAT(finished.errors, AllOf(HasSubstr("step-099999"), HasSubstr(fmt::format("of step {}", step))));

    fs::remove_all(cli.newestCheckpoint("a").value().path);
    const test::Finished none = cli.run({"run", "--resume", "a"});
    EXPECT_EQ(none.exitCode, 2);
    EXPECT_THAT(none.errors, AllOf(HasSubstr("no whole checkpoint"), HasSubstr("step-099999")));
}
