// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "tests/cli/fake_rank_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Set : public testing::Test
{
protected:
    /// A run that goes on until somebody ends it.
    test::Program startEndless(std::vector<std::string> more = {})
    {
        cli.ranksDo("", 1'000'000, 2);
        test::Program program = cli.start(cli.runArguments("a", std::move(more)));
        cli.waitFor("a", [](const auto &s) { return s.state == RunState::Running && s.step > 1; });
        return program;
    }
    std::string refusal(std::vector<std::string> words)
    {
        words.insert(words.begin(), {"set", "a"});
        const test::Finished finished = cli.run(words);
        EXPECT_EQ(finished.exitCode, 2) << finished.out;
        return finished.errors;
    }
    json inForce(int attempt)
    {
        return json::parse(readTextFile(cli.runFolder("a").attemptFolder(attempt) / "in-force.json").value());
    }
    test::FakeRankCommandLine cli;
};

TEST_F(Set, aLiveKeyIsInForceSaidAndKept)
{
    test::Program program = startEndless();
    const test::Finished set = cli.run({"set", "a", "parallel.strategy=none", "--unit", "block.1.*:strategy=grad_op"});
    ASSERT_EQ(set.exitCode, 0) << set.errors;
    EXPECT_THAT(set.out, AllOf(HasSubstr("From step "), HasSubstr("parallel.strategy: full → none"),
                               HasSubstr("unit 'block.1.*': strategy: ")));
    EXPECT_EQ(inForce(1)["parallel"]["strategy"], "none");
    EXPECT_EQ(inForce(1)["unit"][0]["strategy"], "grad_op");
    const json started = json::parse(readTextFile(cli.runFolder("a").configFile(1)).value());
    EXPECT_EQ(started["parallel"]["strategy"], "full") << "as at its start";

    const test::Finished again = cli.run({"set", "a", "parallel.strategy=none"});
    EXPECT_EQ(again.exitCode, 0);
    EXPECT_THAT(again.out, HasSubstr("Nothing changes"));
    const json undone = json::parse(cli.run({"set", "a", "--undo", "--format", "json"}).out);
    EXPECT_EQ(undone["changed"]["parallel.strategy"]["to"], "full");
    EXPECT_EQ(inForce(1)["unit"].size(), 0u);
    EXPECT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    program.wait();
}

TEST_F(Set, severalAtOnceAllComeIntoForce)
{
    test::Program program = startEndless();
    test::Program first = cli.start({"set", "a", "optimizer.clip_norm=2"});
    test::Program second = cli.start({"set", "a", "parallel.strategy=grad_op"});
    test::Program third = cli.start({"set", "a", "parallel.prefetch=off"});
    for (test::Program *each : {&first, &second, &third})
        EXPECT_EQ(each->wait().exitCode, 0);
    EXPECT_EQ(inForce(1)["optimizer"]["clip_norm"], 2.0);
    EXPECT_EQ(inForce(1)["parallel"]["strategy"], "grad_op");
    EXPECT_EQ(inForce(1)["parallel"]["prefetch"], "off");
    EXPECT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    program.wait();
}

TEST_F(Set, whatCannotBeIsRefusedWithWhatToDo)
{
    test::Program program = startEndless({"--unit", "*:kind=norm,strategy=grad_op"});
    EXPECT_THAT(refusal({"train.micro_batch=8"}),
                AllOf(HasSubstr("train.micro_batch is fixed"), HasSubstr("--resume")));
    EXPECT_THAT(refusal({"parallel.strtegy=none"}), HasSubstr("Did you mean parallel.strategy?"));
    EXPECT_THAT(refusal({"parallel.shard_group=3"}), HasSubstr("doesn't divide parallel.ranks = 2"));
    EXPECT_THAT(refusal({"--unit", "block.1.attention.q.*:strategy=none"}),
                AllOf(HasSubstr("about a part of block.1"), HasSubstr("Buckets are made when a run starts")));
    EXPECT_THAT(refusal({"--unit", "blok.*:strategy=none"}), HasSubstr("No parameter matches"));
    EXPECT_THAT(refusal({}), HasSubstr("Say what to set"));
    EXPECT_THAT(refusal({"optimizer.clip_norm=1", "--undo"}), HasSubstr("give it nothing to set"));
    EXPECT_THAT(refusal({"--undo"}), HasSubstr("nothing to undo"));
    EXPECT_EQ(inForce(1), json::parse(readTextFile(cli.runFolder("a").configFile(1)).value()));
    EXPECT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    program.wait();
    EXPECT_THAT(refusal({"optimizer.clip_norm=1"}), HasSubstr("has ended already"));
}

TEST_F(Set, aResumedRunGoesOnWithWhatWasInForceLast)
{
    test::Program program = startEndless();
    ASSERT_EQ(cli.run({"set", "a", "optimizer.clip_norm=3", "optimizer.learning_rate=5e-4"}).exitCode, 0);
    ASSERT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    program.wait();
    cli.ranksDo("", 3);
    const test::Finished resumed =
        cli.run({"run", "--resume", "a", "--steps", "2000000", "--set", "optimizer.learning_rate=2e-3"});
    ASSERT_EQ(resumed.exitCode, 0) << resumed.errors;
    const json config = json::parse(readTextFile(cli.runFolder("a").configFile(2)).value());
    EXPECT_EQ(config["optimizer"]["clip_norm"], 3.0);
    EXPECT_EQ(config["optimizer"]["learning_rate"], 2e-3) << "what is asked for counts more";
}

TEST_F(Set, rulesThatFitNoParameterStartNoRun)
{
    cli.ranksDo("", 2);
    const test::Finished finished = cli.run(cli.runArguments("a", {"--unit", "blok.*:strategy=none"}));
    EXPECT_EQ(finished.exitCode, 2);
    EXPECT_THAT(finished.errors, HasSubstr("No parameter matches the [[unit]] rule for \"blok.*\""));
    EXPECT_FALSE(std::filesystem::exists(cli.runs() / "a"));
}

TEST_F(Set, rulesAreRecordedAndHelped)
{
    cli.ranksDo("", 2);
    ASSERT_EQ(cli.run(cli.runArguments("a", {"--unit", "*:kind=norm,strategy=none"})).exitCode, 0);
    const json record = json::parse(readTextFile(cli.runFolder("a").runFile()).value());
    EXPECT_EQ(record["asked"]["unit"][0]["kind"], "norm");
    const json config = json::parse(readTextFile(cli.runFolder("a").configFile(1)).value());
    EXPECT_EQ(config["unit"][0]["strategy"], "none");
    EXPECT_THAT(cli.run({"run", "--help"}).out,
                AllOf(HasSubstr("--unit PATTERN:KEY=VALUE"), HasSubstr("min_parameters")));
    EXPECT_THAT(cli.run({"set", "--help"}).out,
                AllOf(HasSubstr("optimizer.clip_norm"), testing::Not(HasSubstr("train.steps"))));
}

TEST_F(Set, whatIsPredictedNotToFitIsRefusedUnlessForced)
{
    // Activations of terabytes, which ranks without a model need not have.
    {
        std::ofstream text(cli.data());
        for (int line = 0; line < 100'000; ++line)
            text << "the quick brown fox jumps over the lazy dog\n";
    }
    test::Program program = startEndless({"--set", "model.preset=6b7", "--set", "train.sequence_length=2048", "--set",
                                          "train.micro_batch=1000", "--set", "memory.recompute=block"});
    const std::string refused = refusal({"memory.recompute=off"});
    EXPECT_THAT(refused, AllOf(HasSubstr("The predicted peak of a rank is "), HasSubstr("are free"),
                               HasSubstr("memory.recompute=block ("), HasSubstr("--force")));
    EXPECT_EQ(cli.run({"set", "a", "optimizer.clip_norm=2"}).exitCode, 0) << "what needs no more";
    const test::Finished forced = cli.run({"set", "a", "memory.recompute=off", "--force"});
    EXPECT_EQ(forced.exitCode, 0) << forced.errors;
    EXPECT_THAT(forced.out, HasSubstr("memory.recompute: block → off"));
    EXPECT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    EXPECT_THAT(program.wait().errors + program.outputSoFar(), HasSubstr("predicted to need more than"));
}

TEST_F(Set, aFolderThatCannotHoldFilesIsRefusedBeforeAnythingHappens)
{
    const std::string file = (cli.folder() / "no folder").string();
    std::ofstream(file) << "a file";
    test::Program program = startEndless({"--set", "offload.path=" + file + "/below"});
    for (const auto &words : std::vector<std::vector<std::string>>{{"offload.optimizer=nvme"},
                                                                   {"offload.parameters=nvme", "--force"},
                                                                   {"--unit", "block.1.*:offload_optimizer=nvme"}})
        EXPECT_THAT(refusal(words), AllOf(HasSubstr(file + "/below"), HasSubstr("Not a directory"),
                                          HasSubstr("offload.path="), testing::Not(HasSubstr("--force"))));
    EXPECT_EQ(cli.run({"set", "a", "optimizer.clip_norm=2"}).exitCode, 0) << "the run goes on";
    EXPECT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    program.wait();
    const test::Finished begun =
        cli.run(cli.runArguments("b", {"--set", "offload.optimizer=nvme", "--set", "offload.path=" + file + "/below"}));
    EXPECT_EQ(begun.exitCode, 2);
    EXPECT_THAT(begun.errors, AllOf(HasSubstr(file + "/below"), HasSubstr("Not a directory")));
    EXPECT_FALSE(std::filesystem::exists(cli.runs() / "b"));
}

TEST_F(Set, aDriveThatIsTriedIsLeftAsItWas)
{
    const std::filesystem::path above = cli.folder() / "to be made";
    test::Program program = startEndless({"--set", "offload.path=" + (above / "files").string()});
    EXPECT_EQ(cli.run({"set", "a", "offload.optimizer=nvme"}).exitCode, 0);
    EXPECT_FALSE(std::filesystem::exists(above)) << "ranks make it, and these have no model";
    EXPECT_EQ(cli.run({"stop", "a"}).exitCode, 0);
    program.wait();
}
