// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/run/process_identity.h"
#include "core/run/run_record.h"
#include "tests/cli/fake_rank_command_line.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace fs = std::filesystem;
using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Run : public testing::Test
{
protected:
    static bool running(const run::RunStatus &status) { return status.state == RunState::Running && status.step > 1; }
    void expectNoRankLeft(const run::RunStatus &status)
    {
        for (const run::RankStatus &rank : status.ranks)
            EXPECT_TRUE(test::eventually([&] { return !run::processStartTicks(rank.pid); })) << rank.rank;
    }
    test::FakeRankCommandLine cli;
};

TEST_F(Run, toItsEnd)
{
    cli.ranksDo("", 5);
    const test::Finished finished = cli.run(cli.runArguments("a", {"--steps", "5"}));
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_THAT(finished.out, AllOf(HasSubstr("step 1/5"), HasSubstr("step 5/5  loss 2.0000"), HasSubstr("Done:"),
                                    Not(HasSubstr("\x1b"))));
    const auto record = run::readRunRecord(cli.runFolder("a"));
    ASSERT_TRUE(record);
    EXPECT_EQ(record->asked["train"]["steps"], 5);
    EXPECT_FALSE(record->asked["train"].contains("seed")) << "nobody asked for it";
    EXPECT_EQ(record->resolved["parallel"]["device"], "cpu");
    const auto config = json::parse(readTextFile(cli.runFolder("a").configFile(1)).value());
    EXPECT_EQ(config["data"]["path"], cli.data().string());
    EXPECT_TRUE(fs::exists(cli.runFolder("a").supervisorDatabase(1)));
}

TEST_F(Run, asLinesOfJson)
{
    cli.ranksDo("", 6);
    const test::Finished finished = cli.run(cli.runArguments("a", {"--format", "json"}));
    EXPECT_EQ(finished.exitCode, 0);
    std::istringstream lines(finished.out);
    std::vector<std::string> events;
    json last;
    for (std::string line; std::getline(lines, line);) {
        last = json::parse(line);
        events.push_back(last["event"]);
    }
    EXPECT_EQ(events.front(), "run");
    EXPECT_EQ(std::count(events.begin(), events.end(), "step"), 6);
    EXPECT_EQ(last["event"], "end");
    EXPECT_EQ(last["data"]["state"], "done");
}

TEST_F(Run, whoseRankDies)
{
    cli.ranksDo("rank=1 die@3=9", 1000);
    const test::Finished finished = cli.run(cli.runArguments("a"));
    EXPECT_EQ(finished.exitCode, 1);
    EXPECT_THAT(finished.errors, AllOf(HasSubstr("rank 1 was killed by signal 9 (SIGKILL)"),
                                       HasSubstr("rank 1: die after step 3"), HasSubstr("rank-1.log")));
    const test::Finished status = cli.run({"status", "a", "--format", "json"});
    EXPECT_EQ(json::parse(status.out)["failure"]["signal"], 9);
    const test::Finished sql = cli.run({"sql", "a", "select text from event where kind = 'death'", "--format", "json"});
    EXPECT_THAT(sql.out, HasSubstr("SIGKILL"));
}

TEST_F(Run, interruptedOnceLeavesACheckpointAndGoesOnLater)
{
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a", {"--steps", "100000"}));
    cli.waitFor("a", running);
    program.signal(SIGINT);
    const test::Finished finished = program.wait();
    EXPECT_EQ(finished.exitCode, 130);
    EXPECT_THAT(finished.out,
                AllOf(HasSubstr("Checkpoint of step"), HasSubstr("Ended after step "), HasSubstr("--resume")));
    const auto status = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(status.state, RunState::Done);
    EXPECT_EQ(cli.newestCheckpoint("a")->step, status.step);

    cli.ranksDo("", 3);
    const test::Finished resumed = cli.run({"run", "--resume", "a", "--steps", "200000"});
    EXPECT_EQ(resumed.exitCode, 0) << resumed.errors;
    EXPECT_THAT(resumed.out, HasSubstr("attempt 2"));
    const auto config = json::parse(readTextFile(cli.runFolder("a").configFile(2)).value());
    EXPECT_EQ(config["train"]["steps"], 200'000);
    EXPECT_EQ(config["model"]["preset"], "tiny") << "the rest is as it was";
    const test::Finished over = cli.run({"run", "--resume", "a", "--steps", "2"});
    EXPECT_EQ(over.exitCode, 2);
    EXPECT_THAT(over.errors, HasSubstr("--steps"));
    EXPECT_EQ(cli.runFolder("a").lastAttempt(), 2) << "nothing was made";
}

TEST_F(Run, interruptedTwiceEndsNow)
{
    cli.ranksDo("hang@3", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    const auto status = cli.waitFor("a", running);
    program.signal(SIGINT);
    cli.waitFor("a", [](const auto &s) { return s.state == RunState::Stopping; });
    program.signal(SIGINT);
    const test::Finished finished = program.wait();
    EXPECT_EQ(finished.exitCode, 130);
    EXPECT_FALSE(cli.newestCheckpoint("a"));
    EXPECT_THAT(finished.out, AllOf(HasSubstr("without a checkpoint"), testing::Not(HasSubstr("--resume"))));
    expectNoRankLeft(status);
}

TEST_F(Run, terminatedStopsWithACheckpoint)
{
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    cli.waitFor("a", running);
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait().exitCode, 130);
    EXPECT_TRUE(cli.newestCheckpoint("a"));
}

TEST_F(Run, whoseSupervisorIsKilledLeavesNobodyBehind)
{
    cli.ranksDo("rank=1 hang@3", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    const auto status = cli.waitFor("a", running);
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait().signal, SIGKILL);
    expectNoRankLeft(status);
    EXPECT_THAT(cli.run({"status", "a"}).out,
                AllOf(HasSubstr("lost"), HasSubstr("Start the run anew"), Not(HasSubstr("--resume"))));
    const test::Finished pause = cli.run({"pause", "a"});
    EXPECT_EQ(pause.exitCode, 2);
    EXPECT_THAT(pause.errors, HasSubstr("lost"));
}

TEST_F(Run, commandsTakeEffect)
{
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a", {"--steps", "100000"}));
    cli.waitFor("a", running);
    EXPECT_THAT(cli.run({"pause", "a"}).out, HasSubstr("Paused after step"));
    const auto paused = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(paused.state, RunState::Paused);
    const json checkpoint = json::parse(cli.run({"checkpoint", "a", "--format", "json"}).out);
    EXPECT_EQ(checkpoint["step"], paused.step.value());
    EXPECT_TRUE(fs::exists(fs::path(checkpoint["path"].get<std::string>()) / "manifest.json"));
    EXPECT_EQ(cli.run({"run", "--resume", "a"}).exitCode, 2) << "it is going on";
    EXPECT_EQ(cli.run({"unpause", "a"}).exitCode, 0);
    cli.waitFor("a", [&](const auto &s) { return s.step > *paused.step; });
    const test::Finished stopped = cli.run({"stop", "a"});
    EXPECT_EQ(stopped.exitCode, 0) << stopped.errors;
    EXPECT_THAT(stopped.out, HasSubstr("Ended after step"));
    EXPECT_EQ(program.wait().exitCode, 0) << "stopped, not interrupted";
    const test::Finished late = cli.run({"pause", "a"});
    EXPECT_EQ(late.exitCode, 2) << "wrong usage: nothing can be done to a run that has ended";
    EXPECT_THAT(late.errors, HasSubstr("has ended already (stopped)"));
}

TEST_F(Run, stoppedNowEndsWithoutACheckpoint)
{
    cli.ranksDo("", 100'000);
    test::Program program = cli.start(cli.runArguments("a"));
    cli.waitFor("a", running);
    EXPECT_EQ(cli.run({"stop", "--now", "a"}).exitCode, 0);
    EXPECT_EQ(program.wait().exitCode, 0);
    EXPECT_FALSE(cli.newestCheckpoint("a"));
}

TEST_F(Run, fourAtOnceWithAnotherJobsVariables)
{
    cli.ranksDo("", 30);
    for (const auto &[name, value] : test::Program::Variables{{"RANK", "7"},
                                                              {"WORLD_SIZE", "64"},
                                                              {"LOCAL_RANK", "7"},
                                                              {"MASTER_ADDR", "10.1.2.3"},
                                                              {"MASTER_PORT", "29500"},
                                                              {"TORCHELASTIC_USE_AGENT_STORE", "True"}})
        cli.set(name, value);
    std::vector<test::Program> programs;
    for (int i = 0; i < 4; ++i)
        programs.push_back(cli.start(cli.runArguments("same name")));
    for (test::Program &program : programs) {
        const test::Finished finished = program.wait();
        EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    }
    const json all = json::parse(cli.run({"status", "--format", "json"}).out);
    ASSERT_EQ(all.size(), 4u);
    for (const json &each : all)
        EXPECT_EQ(each["state"], "done");
}

TEST_F(Run, inALocaleWithDecimalCommas)
{
    cli.ranksDo("", 3);
    cli.set("LC_ALL", "de_DE.UTF-8");
    const test::Finished finished = cli.run(cli.runArguments("a", {"--set", "optimizer.learning_rate=0.0005"}));
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_THAT(finished.out, HasSubstr("loss 3.3333"));
    const auto config = json::parse(readTextFile(cli.runFolder("a").configFile(1)).value());
    EXPECT_EQ(config["optimizer"]["learning_rate"], 0.0005);
    cli.set("LC_ALL", "C");
    EXPECT_EQ(cli.run(cli.runArguments("b")).errors.find("locale"), std::string::npos);
}

TEST_F(Run, inAFolderOfTwoHundredAndFiftyCharacters)
{
    cli.ranksDo("", 3);
    fs::path out = cli.folder();
    while (out.native().size() < 200)
        out /= "Ordner für 語";
    out /= std::string(250 - out.native().size() - 1, 'x');
    const test::Finished finished = cli.run(cli.runArguments("a", {"--out", out.string()}));
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_EQ(run::readStatus(run::RunFolder(out)).value().state, RunState::Done);
    const json all = json::parse(cli.run({"status", "--format", "json"}).out);
    ASSERT_EQ(all.size(), 1u) << "the list knows runs that are elsewhere";
    EXPECT_EQ(all[0]["folder"], out.string());
    EXPECT_THAT(cli.run({"logs", out.filename().string()}).out, HasSubstr("rank 0 of 2 begins"));
    fs::remove_all(out);
    EXPECT_EQ(json::parse(cli.run({"status", "--format", "json"}).out).size(), 0u);
}

TEST_F(Run, helpListsEveryKey)
{
    const test::Finished help = cli.run({"run", "--help"});
    EXPECT_EQ(help.exitCode, 0);
    for (const char *word : {"--strategy", "--resume", "train.steps", "optimizer.learning_rate", "record.level"})
        EXPECT_THAT(help.out, HasSubstr(word));
}
