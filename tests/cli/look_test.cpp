// SPDX-License-Identifier: Apache-2.0
// status, attach, logs, doctor.
#include "tests/cli/fake_rank_command_line.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Status, listsAllRunsOrSaysThatThereAreNone)
{
    test::FakeRankCommandLine cli;
    EXPECT_THAT(cli.run({"status"}).out, HasSubstr("There are no runs"));
    EXPECT_EQ(cli.run({"status", "--format", "json"}).out, "[]\n");
    cli.ranksDo("", 2);
    ASSERT_EQ(cli.run(cli.runArguments("a run")).exitCode, 0);
    EXPECT_THAT(cli.run({"status"}).out, AllOf(HasSubstr("a run"), HasSubstr("done"), HasSubstr("2/2")));
    EXPECT_THAT(cli.run({"status", cli.runFolder("a run").root().string()}).out, HasSubstr("attempt     1"));
}

TEST(Attach, followsARunToItsEnd)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    const auto status = cli.waitFor("a", [](const auto &s) { return s.step > 1; });
    test::Program attaching = cli.start({"attach", "a", "--format", "json"});
    ASSERT_TRUE(
        test::eventually([&] { return attaching.outputSoFar().find("\"event\":\"step\"") != std::string::npos; }));
    ::kill(static_cast<pid_t>(status.ranks[1].pid), SIGKILL);
    const test::Finished attached = attaching.wait();
    EXPECT_EQ(attached.exitCode, 1) << "as the run's";
    EXPECT_THAT(attached.out, HasSubstr("\"event\":\"end\""));
    EXPECT_THAT(attached.errors, HasSubstr("rank 1 was killed by signal 9 (SIGKILL)"));
    EXPECT_EQ(program.wait().exitCode, 1);
    EXPECT_EQ(cli.run({"attach", "a"}).exitCode, 1) << "a run that has ended says how";
}

TEST(Attach, leavesTheRunWhenInterrupted)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    cli.waitFor("a", [](const auto &status) { return status.step > 1; });
    test::Program attached = cli.start({"attach", "a"});
    ASSERT_TRUE(test::eventually([&] { return attached.outputSoFar().find("step ") != std::string::npos; }));
    attached.signal(SIGINT);
    const test::Finished left = attached.wait();
    EXPECT_EQ(left.exitCode, 130);
    EXPECT_THAT(left.errors, HasSubstr("The run goes on"));
    const auto step = cli.waitFor("a", [](const auto &) { return true; }).step.value();
    cli.waitFor("a", [&](const auto &status) { return status.step > step; });
    EXPECT_EQ(cli.run({"stop", "--now", "a"}).exitCode, 0);
    program.wait();
}

TEST(Attach, followsTheFileWhereTheSupervisorCannotBeReached)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    const auto status = cli.waitFor("a", [](const auto &s) { return s.step > 1; });
    program.signal(SIGSTOP); // for the moment it can't make its socket anew
    std::filesystem::remove(status.socket);
    test::Program attached = cli.start({"attach", "a"});
    EXPECT_TRUE(
        test::eventually([&] { return attached.errorsSoFar().find("following its state.json") != std::string::npos; }));
    EXPECT_THAT(attached.errorsSoFar(), HasSubstr("Can't reach the run's supervisor"));
    program.signal(SIGCONT);
    EXPECT_TRUE(test::eventually([&] { return cli.run({"stop", "--now", "a"}).exitCode == 0; }));
    EXPECT_EQ(attached.wait().exitCode, 0) << "as the run's";
    program.wait();
}

TEST(Logs, areThoseOfOneRankOrOfAll)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 2);
    ASSERT_EQ(cli.run(cli.runArguments("a")).exitCode, 0);
    EXPECT_EQ(cli.run({"logs", "a"}).out, "[rank 0] rank 0 of 2 begins\n[rank 1] rank 1 of 2 begins\n");
    EXPECT_EQ(cli.run({"logs", "a", "--rank", "1"}).out, "rank 1 of 2 begins\n");
    const test::Finished none = cli.run({"logs", "a", "--rank", "2"});
    EXPECT_EQ(none.exitCode, 2);
    EXPECT_THAT(none.errors, HasSubstr("0 to 1"));
    EXPECT_EQ(cli.run({"logs", "a", "--attempt", "7"}).exitCode, 2);
}

TEST(Logs, followUntilTheRunEnds)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("rank=1 stop@3", 1000);
    test::Program program = cli.start(cli.runArguments("a"));
    const auto status = cli.waitFor("a", [](const auto &s) { return s.step > 1; });
    test::Program following = cli.start({"logs", "a", "--rank", "1", "--follow"});
    ASSERT_TRUE(
        test::eventually([&] { return following.outputSoFar().find("stop after step 3") != std::string::npos; }));
    EXPECT_EQ(::waitpid(following.pid(), nullptr, WNOHANG), 0) << "it follows for as long as the run goes on";
    ::kill(static_cast<pid_t>(status.ranks[1].pid), SIGKILL);
    EXPECT_EQ(following.wait().exitCode, 0);
    program.wait();
}

TEST(Doctor, saysWhatItFound)
{
    test::FakeRankCommandLine cli;
    const test::Finished good = cli.run({"doctor", "--format", "json"});
    const json report = json::parse(good.out);
    EXPECT_EQ(good.exitCode, report["ok"].get<bool>() ? 0 : 1);
    EXPECT_GE(report["findings"].size(), 6u);
    for (const json &finding : report["findings"])
        EXPECT_TRUE(finding["verdict"] == "ok" || !finding["remedy"].is_null()) << finding;
    cli.set("SHARDSCOPE_WORKER", "/bin/false");
    const test::Finished bad = cli.run({"doctor"});
    EXPECT_EQ(bad.exitCode, 1);
    EXPECT_THAT(bad.out, AllOf(HasSubstr("/bin/false"), HasSubstr("setup.sh"), HasSubstr("do not work")));
}

TEST(Doctor, takesATooOldDriverForANoteSinceRunsUseTheProcessor)
{
    test::FakeRankCommandLine cli;
    const char *library = std::getenv("FAKE_CUDA_DRIVER");
    ASSERT_TRUE(library) << "FAKE_CUDA_DRIVER names no library: CTest sets it.";
    std::filesystem::create_symlink(library, cli.folder() / "libcuda.so.1");
    cli.set("LD_LIBRARY_PATH", cli.folder().string());
    cli.set("FAKE_CUDA_VERSION", "12040");
    const test::Finished doctor = cli.run({"doctor", "--format", "json"});
    const json report = json::parse(doctor.out);
    json driver;
    for (const json &finding : report["findings"]) {
        if (finding["subject"] == "driver")
            driver = finding;
    }
    ASSERT_FALSE(driver.is_null()) << doctor.out;
    EXPECT_EQ(driver["verdict"], "note");
    EXPECT_EQ(driver["text"], "supports CUDA 12.4");
    EXPECT_THAT(driver["remedy"].get<std::string>(), AllOf(HasSubstr("580"), HasSubstr("use the CPU")));
    EXPECT_EQ(doctor.exitCode, 0) << doctor.out;
    EXPECT_THAT(cli.run({"doctor"}).out, HasSubstr("Runs work here."));
    cli.ranksDo("", 2);
    EXPECT_EQ(cli.run({"run", "--preset", "tiny", "--data", cli.data().string()}).exitCode, 0) << "as doctor says";
}
