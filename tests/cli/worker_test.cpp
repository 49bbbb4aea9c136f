// SPDX-License-Identifier: Apache-2.0
// From end to end: shardscope-cli with the real worker, a tiny model on two CPU ranks.
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/launch/launch_plan.h"
#include "core/run/process_identity.h"
#include "tests/cli/program.h"

#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace std::chrono_literals;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class WithWorker : public testing::Test
{
protected:
    void SetUp() override
    {
        // The command line looks beside itself, and this test is beside it.
        if (const auto worker = launch::findWorker(); !worker)
            GTEST_SKIP() << "shardscope-worker is not built: " << worker.error().text;
        std::ofstream text(data());
        for (int line = 0; line < 3000; ++line)
            text << line << " quick brown foxes jump over " << line % 97 << " lazy dogs\n";
    }
    fs::path data() const { return cli.folder() / "a text.txt"; }
    std::vector<std::string> arguments(const std::string &name, std::vector<std::string> more = {}) const
    {
        std::vector<std::string> all = {"run",
                                        "--preset",
                                        "tiny",
                                        "--data",
                                        data().string(),
                                        "--ranks",
                                        "2",
                                        "--device",
                                        "cpu",
                                        "--set",
                                        "run.name=" + name,
                                        "--set",
                                        "train.sequence_length=32",
                                        "--set",
                                        "train.micro_batch=1"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// A run that goes on until somebody ends it, after its first steps.
    test::Program startEndless(const std::string &name)
    {
        test::Program program = cli.start(arguments(name, {"--steps", "1000000"}));
        cli.waitFor(
            name, [](const auto &s) { return s.state == RunState::Running && s.step > 1; }, 60s);
        return program;
    }
    std::vector<double> losses(const std::string &name)
    {
        const test::Finished sql =
            cli.run({"sql", name, "select distinct number, loss from step where loss is not null order by number",
                     "--format", "json"});
        EXPECT_EQ(sql.exitCode, 0) << sql.errors;
        std::vector<double> all;
        const json result = json::parse(sql.out);
        for (const json &row : result["rows"])
            all.push_back(row[1]);
        return all;
    }
    test::CommandLine cli;
};

TEST_F(WithWorker, aRunToItsEndIsRecordedAndAnalysed)
{
    const test::Finished finished = cli.run(arguments("a", {"--steps", "6"}));
    ASSERT_EQ(finished.exitCode, 0) << finished.out << finished.errors << cli.run({"logs", "a"}).out;
    EXPECT_THAT(finished.out, HasSubstr("step 6/6"));
    const auto status = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(status.state, RunState::Done);
    EXPECT_GT(status.tokensPerSecond.value_or(0), 0);
    EXPECT_GT(status.peakAllocatedBytes.value_or(0), 0);
    EXPECT_GT(status.exposedCommunicationShare.value_or(0), 0);
    EXPECT_EQ(losses("a").size(), 6u);
    const test::Finished analysis = cli.run({"analyze", "a", "--format", "json"});
    ASSERT_EQ(analysis.exitCode, 0) << analysis.errors;
    const json report = json::parse(analysis.out);
    EXPECT_TRUE(report["complete"]);
    EXPECT_EQ(report["ranks"].size(), 2u);
    EXPECT_EQ(report["steps"].size(), 6u);
    EXPECT_THAT(cli.run({"analyze", "a"}).out, HasSubstr("Recording of a (by shardscope)"));
}

TEST_F(WithWorker, interruptedAndResumedEqualsUninterrupted)
{
    const std::vector<std::string> steps = {"--steps", "40"};
    ASSERT_EQ(cli.run(arguments("whole", steps)).exitCode, 0);
    test::Program program = cli.start(arguments("parts", steps));
    cli.waitFor(
        "parts", [](const auto &s) { return s.step > 2; }, 60s);
    program.signal(SIGINT);
    const test::Finished interrupted = program.wait();
    ASSERT_EQ(interrupted.exitCode, 130) << interrupted.out << interrupted.errors;
    const auto status = run::readStatus(cli.runFolder("parts")).value();
    EXPECT_EQ(cli.newestCheckpoint("parts")->step, status.step);
    EXPECT_LT(status.step, 40);
    const test::Finished resumed = cli.run({"run", "--resume", "parts"});
    ASSERT_EQ(resumed.exitCode, 0) << resumed.out << resumed.errors;
    EXPECT_EQ(losses("whole").size(), 40u);
    EXPECT_EQ(losses("parts"), losses("whole")) << "to the bit";
}

TEST_F(WithWorker, aRunGoesOnAtOtherRanks)
{
    ASSERT_EQ(cli.run(arguments("a", {"--steps", "12", "--set", "train.global_batch=4", "--set", "checkpoint.every=5",
                                      "--set", "checkpoint.keep=9"}))
                  .exitCode,
              0);
    const double whole = run::readStatus(cli.runFolder("a")).value().loss.value();
    for (const auto &[ranks, format] : {std::pair("1", "full"), std::pair("4", "sharded")}) {
        // From step 5, then from what the one rank wrote of step 10.
        fs::remove_all(cli.runFolder("a").checkpointsFolder() / "step-000012");
        if (std::string(ranks) == "1")
            fs::remove_all(cli.runFolder("a").checkpointsFolder() / "step-000010");
        const test::Finished resumed =
            cli.run({"run", "--resume", "a", "--ranks", ranks, "--set", std::string("checkpoint.format=") + format});
        ASSERT_EQ(resumed.exitCode, 0) << resumed.out << resumed.errors;
        EXPECT_NEAR(run::readStatus(cli.runFolder("a")).value().loss.value(), whole, 1e-5) << ranks << " ranks";
    }
    const test::Finished refused = cli.run({"run", "--resume", "a", "--ranks", "3", "--steps", "20"});
    EXPECT_EQ(refused.exitCode, 2);
    EXPECT_THAT(refused.errors, HasSubstr("train.global_batch"));
}

TEST_F(WithWorker, pausesCheckpointsAndStops)
{
    test::Program program = startEndless("a");
    const json paused = json::parse(cli.run({"pause", "a", "--format", "json"}).out);
    const auto status = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(status.state, RunState::Paused);
    for (const run::RankStatus &rank : status.ranks)
        EXPECT_EQ(rank.state, RunState::Paused);
    const json checkpoint = json::parse(cli.run({"checkpoint", "a", "--format", "json"}).out);
    EXPECT_EQ(checkpoint["step"], paused["step"]);
    EXPECT_EQ(cli.newestCheckpoint("a")->step, paused["step"].get<int64_t>());
    EXPECT_EQ(cli.run({"unpause", "a"}).exitCode, 0);
    cli.waitFor("a", [&](const auto &s) { return s.step > paused["step"].get<int64_t>(); });
    const test::Finished stopped = cli.run({"stop", "a"});
    EXPECT_EQ(stopped.exitCode, 0) << stopped.errors;
    EXPECT_EQ(program.wait().exitCode, 0);
    const auto ended = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(cli.newestCheckpoint("a")->step, ended.step);
}

TEST_F(WithWorker, aKilledRankEndsTheRunWithinFiveSeconds)
{
    test::Program program = startEndless("a");
    const auto status = run::readStatus(cli.runFolder("a")).value();
    const auto begin = std::chrono::steady_clock::now();
    ::kill(static_cast<pid_t>(status.ranks[1].pid), SIGKILL);
    const test::Finished finished = program.wait();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_EQ(finished.exitCode, 1);
    EXPECT_THAT(finished.errors, HasSubstr("rank 1 was killed by signal 9 (SIGKILL)"));
    const auto failed = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(failed.state, RunState::Failed);
    EXPECT_EQ(failed.failure->rank, 1);
    for (const run::RankStatus &rank : failed.ranks)
        EXPECT_FALSE(run::processStartTicks(rank.pid));
    EXPECT_GE(losses("a").size(), 1u) << "what was recorded stays readable";
}

TEST_F(WithWorker, aKilledSupervisorLeavesNobodyBehind)
{
    test::Program program = startEndless("a");
    const auto status = run::readStatus(cli.runFolder("a")).value();
    program.signal(SIGKILL);
    program.wait();
    for (const run::RankStatus &rank : status.ranks)
        EXPECT_TRUE(test::eventually([&] { return !run::processStartTicks(rank.pid); }, 5s)) << rank.rank;
    EXPECT_EQ(run::currentStatus(cli.runFolder("a"), realtimeNs())->state, RunState::Lost);
}

TEST_F(WithWorker, interruptedTwiceEndsNow)
{
    test::Program program = startEndless("a");
    const auto status = run::readStatus(cli.runFolder("a")).value();
    cli.run({"pause", "a"}); // so that the first interrupt is not carried out before the second
    program.signal(SIGINT);
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(10s).exitCode, 130);
    for (const run::RankStatus &rank : status.ranks)
        EXPECT_FALSE(run::processStartTicks(rank.pid));
}

TEST_F(WithWorker, fourRunsAtOnceWithAnotherJobsVariablesAndDecimalCommas)
{
    for (const auto &[name, value] : test::Program::Variables{{"RANK", "7"},
                                                              {"WORLD_SIZE", "64"},
                                                              {"LOCAL_RANK", "7"},
                                                              {"MASTER_ADDR", "10.1.2.3"},
                                                              {"MASTER_PORT", "29500"},
                                                              {"LC_ALL", "de_DE.UTF-8"}})
        cli.set(name, value);
    std::vector<test::Program> programs;
    for (const char *name : {"one", "zwei \"2\"", "三", "four"})
        programs.push_back(cli.start(arguments(name, {"--steps", "3"})));
    for (test::Program &program : programs) {
        const test::Finished finished = program.wait(90s);
        EXPECT_EQ(finished.exitCode, 0) << finished.out << finished.errors;
    }
    EXPECT_EQ(losses("one"), losses("三"));
    EXPECT_EQ(losses("one").size(), 3u);
}

TEST_F(WithWorker, trainsWithNoNetworkInterfaceButLoopback)
{
    const std::vector<std::string> alone = {
        "/usr/bin/unshare", "-rn", "/bin/sh", "-c", "ip link set lo up && exec \"$@\"", "sh"};
    if (cli.startThrough(alone, {"--version"}).wait().exitCode != 0)
        GTEST_SKIP() << "a network namespace can't be made here (unshare -rn, ip link set lo up)";
    const test::Finished finished = cli.startThrough(alone, arguments("a", {"--steps", "3"})).wait(60s);
    EXPECT_EQ(finished.exitCode, 0) << finished.out << finished.errors;
    EXPECT_EQ(losses("a").size(), 3u);
}

TEST_F(WithWorker, aLackOfMemoryFailsTheRunWithWhatToChange)
{
    // An address space that holds the program, and not the activations of so many sequences.
    const fs::path wrapper = cli.folder() / "worker.sh";
    std::ofstream(wrapper) << "#!/bin/sh\nulimit -v 5000000\nexec '" << launch::findWorker()->string() << "' \"$@\"\n";
    fs::permissions(wrapper, fs::perms::owner_all);
    cli.set("SHARDSCOPE_WORKER", wrapper.string());
    std::ofstream text(data());
    for (int line = 0; line < 400'000; ++line)
        text << line << " quick brown foxes jump over lazy dogs\n";
    text.close();
    const test::Finished finished = cli.run(arguments("a", {"--set", "train.micro_batch=65536", "--steps", "2"}));
    EXPECT_EQ(finished.exitCode, 1) << finished.out << finished.errors;
    EXPECT_THAT(finished.errors, AllOf(HasSubstr(" ran out of memory"), HasSubstr("halve train.micro_batch")));
    const auto failed = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(failed.state, RunState::Failed);
    EXPECT_TRUE(failed.failure->rank);
    EXPECT_THAT(cli.run({"sql", "a", "select kind from event"}).out, HasSubstr("out_of_memory"));
}
