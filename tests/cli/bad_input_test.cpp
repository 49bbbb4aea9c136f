// SPDX-License-Identifier: Apache-2.0
// What bad input gets: a message that names the thing and the remedy, exit code 2, and nothing half-made.
#include "core/base/file.h"
#include "tests/cli/fake_rank_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using testing::AllOf;
using testing::HasSubstr;

class BadInput : public testing::Test
{
protected:
    /// `run` with these arguments fails with 2, says this, and makes nothing.
    void refused(std::vector<std::string> arguments, const testing::Matcher<std::string> &message)
    {
        arguments.insert(arguments.begin(), "run");
        const int64_t before = entries();
        const test::Finished finished = cli.run(arguments);
        EXPECT_EQ(finished.exitCode, 2) << finished.out << finished.errors;
        EXPECT_THAT(finished.errors, message);
        EXPECT_EQ(finished.out, "");
        EXPECT_EQ(entries(), before) << "something was made";
    }
    /// In the runs directory; -1 where there is none.
    int64_t entries() const
    {
        std::error_code error;
        const fs::directory_iterator all(cli.runs(), error);
        return error ? -1 : std::distance(begin(all), end(all));
    }
    std::string data() const { return cli.data().string(); }
    std::string file(const std::string &name, const std::string &text)
    {
        const fs::path path = cli.folder() / name;
        EXPECT_TRUE(writeFileAtomically(path, text));
        return path.string();
    }
    test::FakeRankCommandLine cli;
};

TEST_F(BadInput, modelFolders)
{
    refused({"--data", data(), "--model", "/no/such"}, HasSubstr("There is no folder /no/such"));
    const fs::path folder = cli.folder() / "model";
    fs::create_directory(folder);
    const auto config = [&](const std::string &more) {
        file(
            "model/config.json",
            R"({"model_type": "llama", "vocab_size": 300, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
                 "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512)" +
                more + "}");
    };
    const std::vector<std::string> run = {"--data", data(), "--model", folder.string()};
    config(R"(, "rope_scaling": {"type": "longrope"}, "hidden_act": "gelu")");
    refused(run, AllOf(HasSubstr("RoPE of the kind \"longrope\""), HasSubstr("hidden_act = \"gelu\"")));
    config("");
    file("model/model.safetensors", "12345678{}");
    refused(run, HasSubstr("model.safetensors is no whole safetensors file"));
    fs::remove(folder / "model.safetensors");
    refused({"--data", data(), "--model", folder.string(), "--set", "train.sequence_length=513"},
            HasSubstr("at most 512 tokens"));
    refused({"--data", data(), "--model", folder.string(), "--preset", "tiny"}, HasSubstr("exclude each other"));
}

TEST_F(BadInput, wordsOfTheCommandLine)
{
    EXPECT_EQ(cli.run({}).exitCode, 2);
    const test::Finished verb = cli.run({"rnu"});
    EXPECT_EQ(verb.exitCode, 2);
    EXPECT_THAT(verb.errors, AllOf(HasSubstr("There is no rnu"), HasSubstr("Did you mean run?")));
    refused({"--stpes", "4"}, AllOf(HasSubstr("--stpes"), HasSubstr("Did you mean --steps?")));
    refused({"--format", "yaml"}, HasSubstr("yaml"));
}

TEST_F(BadInput, keysAndValues)
{
    refused({"--set", "train.stpes=4"}, AllOf(HasSubstr("train.stpes"), HasSubstr("Did you mean train.steps?")));
    refused({"--set", "train.steps"}, HasSubstr("train.steps"));
    refused({"--steps", "many"}, AllOf(HasSubstr("train.steps"), HasSubstr("many")));
    refused({"--steps", "0"}, HasSubstr("train.steps"));
    refused({"--set", "optimizer.learning_rate=0,001"}, HasSubstr("0,001"));
    refused({"--strategy", "ful"}, AllOf(HasSubstr("ful"), HasSubstr("grad_op")));
    refused({"--preset", "15n"}, AllOf(HasSubstr("15n"), HasSubstr("15m")));
}

TEST_F(BadInput, configurationFiles)
{
    refused({"/nowhere/c.toml"}, HasSubstr("/nowhere/c.toml"));
    refused({file("a.toml", "[train]\nstpes = 3\n")}, AllOf(HasSubstr("a.toml:2"), HasSubstr("train.steps")));
    refused({file("b.toml", "[train\nsteps = 3\n")}, HasSubstr("b.toml:1"));
}

TEST_F(BadInput, dataThatCannotBeTrainedOn)
{
    const auto otherData = HasSubstr("with --data");
    refused({"--data", "/nowhere/text"}, AllOf(HasSubstr("/nowhere/text"), HasSubstr("Give a text file")));
    refused({"--data", file("empty.txt", "")}, AllOf(HasSubstr("empty.txt is empty"), otherData));
    refused({"--data", file("empty.bin", "")}, AllOf(HasSubstr("empty.bin is empty"), otherData));
    refused({"--data", file("short.txt", "too short")}, HasSubstr("short.txt"));
    // 60000 is no token of a model of 32,000.
    std::string tokens(2000, '\0');
    tokens[1000] = '\x60';
    tokens[1001] = '\xea';
    refused({"--data", file("tokens.bin", tokens)},
            AllOf(HasSubstr("tokens.bin"), HasSubstr("60000"), HasSubstr("500")));
    refused({"--data", file("odd.bin", "odd")}, AllOf(HasSubstr("odd.bin"), HasSubstr("Write it anew")));
    const fs::path folder = cli.folder() / "no text";
    fs::create_directory(folder);
    refused({"--data", folder.string()}, AllOf(HasSubstr("no text holds no text files"), otherData));
    refused({"--data", "/dev/null"}, AllOf(HasSubstr("/dev/null is neither"), otherData));
}

TEST_F(BadInput, dataThatCannotBeRead)
{
    // Not even root can read a link that leads to itself.
    const fs::path circle = cli.folder() / "circle.txt";
    fs::create_symlink(circle, circle);
    refused({"--data", circle.string()},
            AllOf(HasSubstr("Can't read"), HasSubstr("circle.txt"), HasSubstr("Name other data with --data")));
    if (::geteuid() != 0) {
        const std::string closed = file("closed.txt", std::string(5000, 'x'));
        ::chmod(closed.c_str(), 0);
        refused({"--data", closed}, AllOf(HasSubstr("closed.txt"), HasSubstr("chmod"), HasSubstr("--data")));
    }
}

TEST_F(BadInput, whatTheMachineOrTheModelCannotDo)
{
    refused({"--data", data(), "--set", "train.sequence_length=1000000"}, HasSubstr("train.sequence_length"));
    refused({"--data", data(), "--ranks", "64", "--device", "cuda"}, HasSubstr("parallel."));
    cli.set("SHARDSCOPE_WORKER", "/nowhere/worker");
    refused({"--data", data(), "--preset", "tiny"}, HasSubstr("/nowhere/worker"));
}

TEST_F(BadInput, runFoldersThatExistOrCannotBeMade)
{
    refused({"--data", data(), "--preset", "tiny", "--out", "/proc/run"}, HasSubstr("/proc/run"));
    const std::string tooLong = (cli.folder() / "p/q" / std::string(300, 'z')).string();
    refused({"--data", data(), "--preset", "tiny", "--out", tooLong}, HasSubstr("--out"));
    EXPECT_FALSE(fs::exists(cli.folder() / "p")) << "a parent stays";
    cli.ranksDo("", 2);
    const std::string out = (cli.folder() / "a run").string();
    ASSERT_EQ(cli.run(cli.runArguments("x", {"--out", out})).exitCode, 0);
    const std::string before = readTextFile(fs::path(out) / "run.json").value();
    refused({"--data", data(), "--preset", "tiny", "--out", out}, AllOf(HasSubstr("a run"), HasSubstr("--resume")));
    EXPECT_EQ(readTextFile(fs::path(out) / "run.json").value(), before);
    refused({"--data", data(), "--preset", "tiny", "--resume", "nothing"}, HasSubstr("nothing"));
    refused({"--resume", out}, HasSubstr("no whole checkpoint"));
}

TEST_F(BadInput, runsThatAreNotThere)
{
    for (const char *verb : {"attach", "logs", "pause", "unpause", "checkpoint", "stop", "analyze", "status"}) {
        const test::Finished finished = cli.run({verb, "nothing"});
        EXPECT_EQ(finished.exitCode, 2) << verb;
        EXPECT_THAT(finished.errors, HasSubstr("nothing")) << verb;
    }
    EXPECT_EQ(cli.run({"sql", "nothing", "select 1"}).exitCode, 2);
}
