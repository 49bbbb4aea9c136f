// SPDX-License-Identifier: Apache-2.0
// From end to end: shardscope-cli with the real worker, a tiny model on two CPU ranks.
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/run/process_identity.h"
#include "tests/cli/with_worker.h"

#include <csignal>
#include <gmock/gmock.h>

namespace fs = std::filesystem;
using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

using test::kConstantRate;
using test::WithWorker;

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
    // Endless, so that the interrupt comes before the end however fast the machine is; at a rate that does not depend
    // on the number of steps.
    test::Program program = startEndless("parts", kConstantRate);
    program.signal(SIGINT);
    const test::Finished interrupted = program.wait();
    ASSERT_EQ(interrupted.exitCode, 130) << interrupted.out << interrupted.errors;
    const int64_t step = run::readStatus(cli.runFolder("parts")).value().step.value();
    EXPECT_EQ(cli.newestCheckpoint("parts")->step, step);
    const std::string steps = std::to_string(step + 5);
    const test::Finished resumed = cli.run({"run", "--resume", "parts", "--steps", steps});
    ASSERT_EQ(resumed.exitCode, 0) << resumed.out << resumed.errors;
    std::vector<std::string> whole = kConstantRate;
    whole.insert(whole.end(), {"--steps", steps});
    ASSERT_EQ(cli.run(arguments("whole", whole)).exitCode, 0);
    EXPECT_EQ(losses("whole").size(), static_cast<size_t>(step + 5));
    EXPECT_EQ(losses("parts"), losses("whole")) << "to the bit";
}

/// Checkpoints, sharded and whole, that are written behind the training, and what comes of them at other world sizes.
class WithCheckpoints : public WithWorker
{
protected:
    using WithWorker::WithWorker;
    void expectToGoOnAtOtherRanks(std::vector<std::string> more);
};

class WithCheckpointsCuda : public WithCheckpoints
{
protected:
    WithCheckpointsCuda()
        : WithCheckpoints(DeviceKind::Cuda)
    {
    }
};

void WithCheckpoints::expectToGoOnAtOtherRanks(std::vector<std::string> more)
{
    for (const char *key :
         {"train.global_batch=4", "checkpoint.every=5", "checkpoint.keep=9", "checkpoint.asynchronous=true"})
        more.insert(more.end(), {"--set", key});
    more.insert(more.end(), {"--steps", "12"});
    const test::Finished first = cli.run(arguments("a", more));
    ASSERT_EQ(first.exitCode, 0) << first.out << first.errors;
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

TEST_F(WithCheckpoints, aRunGoesOnAtOtherRanks)
{
    expectToGoOnAtOtherRanks({});
}

TEST_F(WithCheckpointsCuda, aRunGoesOnAtOtherRanks)
{
    expectToGoOnAtOtherRanks({});
}

TEST_F(WithCheckpointsCuda, adaptersGoOnAtOtherRanks)
{
    expectToGoOnAtOtherRanks({"--set", "lora.rank=8"});
}

TEST_F(WithWorker, aResumeThatFitsNotIsRefusedBeforeAnAttemptIsMade)
{
    ASSERT_EQ(cli.run(arguments("a", {"--steps", "2"})).exitCode, 0);
    const auto expectRefused = [this](const std::string &assignment, const char *why) {
        const test::Finished refused = cli.run({"run", "--resume", "a", "--steps", "3", "--set", assignment});
        EXPECT_EQ(refused.exitCode, 2) << assignment;
        EXPECT_THAT(refused.errors, AllOf(HasSubstr("step-000002"), HasSubstr(why)));
    };
    expectRefused("lora.rank=4", "its model has lora_rank = 0, this one 4");
    expectRefused("model.preset=15m", "its model has hidden = 128, this one 288");
    expectRefused("optimizer.kind=sgd", "give --set optimizer.kind=adamw");
    expectRefused("train.seed=3", "give --set train.seed=");
    EXPECT_FALSE(fs::exists(cli.runFolder("a").attemptFolder(2)));
    const test::Finished resumed = cli.run({"run", "--resume", "a", "--steps", "3"});
    EXPECT_EQ(resumed.exitCode, 0) << resumed.errors;
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

TEST_F(WithWorker, aKilledRankEndsTheRun)
{
    test::Program program = startEndless("a");
    const auto status = run::readStatus(cli.runFolder("a")).value();
    ::kill(static_cast<pid_t>(status.ranks[1].pid), SIGKILL);
    const test::Finished finished = program.wait();
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
        EXPECT_TRUE(test::eventually([&] { return !run::processStartTicks(rank.pid); })) << rank.rank;
    EXPECT_EQ(run::currentStatus(cli.runFolder("a"), realtimeNs())->state, RunState::Lost);
}

TEST_F(WithWorker, interruptedTwiceEndsNow)
{
    test::Program program = startEndless("a");
    const auto status = run::readStatus(cli.runFolder("a")).value();
    cli.run({"pause", "a"}); // so that the first interrupt is not carried out before the second
    program.signal(SIGINT);
    program.signal(SIGINT);
    EXPECT_EQ(program.wait().exitCode, 130);
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
        const test::Finished finished = program.wait();
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
    const test::Finished finished = cli.startThrough(alone, arguments("a", {"--steps", "3"})).wait();
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
