// SPDX-License-Identifier: Apache-2.0
// What `run` shows and does while it tokenises, with a stand-in for Python's tokenizers package that takes its time.
#include "tests/cli/fake_rank_command_line.h"
#include "tests/cli/terminal.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// Ids are bytes. Each batch waits while there is a file "wait".
constexpr const char *kPackage = R"(
import os, time
class Encoding:
    def __init__(self, ids): self.ids = ids
class Tokenizer:
    @staticmethod
    def from_file(name): return Tokenizer()
    def no_truncation(self): pass
    def no_padding(self): pass
    def get_vocab(self, with_added_tokens): return {"a": 255}
    def token_to_id(self, token): return 0
    def encode_batch(self, texts, add_special_tokens):
        while os.path.exists(os.path.join(os.path.dirname(__file__), "wait")) and len(texts) != 3: time.sleep(0.02)
        return [Encoding(list(text.encode())) for text in texts]
)";

class Tokenise : public testing::Test
{
protected:
    Tokenise()
    {
        fs::create_directories(package);
        std::ofstream(package / "tokenizers.py") << kPackage;
        std::ofstream(cli.folder() / "tokenizer.json") << "{}";
        std::ofstream(package / "python") << "#!/bin/sh\nPYTHONPATH=\"$(dirname \"$0\")\" exec python3 \"$@\"\n";
        fs::permissions(package / "python", fs::perms::owner_all);
        cli.set("SHARDSCOPE_PYTHON", (package / "python").string());
        cli.ranksDo("", 2);
    }
    void hold() const { std::ofstream(package / "wait").put('\n'); }
    std::vector<std::string> arguments() const
    {
        return cli.runArguments("mine", {"--set", "data.tokenizer=" + (cli.folder() / "tokenizer.json").string(),
                                         "--set", "train.sequence_length=64"});
    }
    /// Files of the cache.
    std::vector<std::string> cached() const
    {
        std::vector<std::string> names;
        std::error_code error;
        for (const auto &entry : fs::directory_iterator(cli.folder() / "cache" / "shardscope" / "tokens", error))
            names.push_back(entry.path().filename().string());
        return names;
    }
    test::FakeRankCommandLine cli;
    const fs::path package = cli.folder() / "package";
};

} // namespace

TEST_F(Tokenise, theTokensAreMadeBeforeTheRunAndKept)
{
    const test::Finished first = cli.run(arguments());
    EXPECT_EQ(first.exitCode, 0) << first.errors;
    ASSERT_EQ(cached().size(), 1);
    // Now it goes without Python.
    fs::remove_all(package);
    std::vector<std::string> again = arguments();
    again.insert(again.end(), {"--set", "run.name=again"});
    const test::Finished second = cli.run(again);
    EXPECT_EQ(second.exitCode, 0) << second.errors;
}

TEST_F(Tokenise, aTerminalShowsHowFarItIsAndCtrlCCancels)
{
    hold();
    test::Terminal terminal;
    test::Program run = cli.start(arguments(), terminal.slave);
    terminal.closeSlave();
    EXPECT_TRUE(terminal.shows("Tokenising: 0 %")) << terminal.read();
    EXPECT_TRUE(terminal.shows("KiB")) << terminal.read();
    terminal.type('\x03');
    const test::Finished finished = run.wait();
    EXPECT_EQ(finished.exitCode, 130);
    EXPECT_TRUE(terminal.shows("Cancelled while the data were prepared")) << terminal.read();
    EXPECT_TRUE(cached().empty());
    EXPECT_FALSE(fs::exists(cli.runs() / "mine"));
}

TEST_F(Tokenise, withoutATerminalTheEndOfTheSessionDoesNotEndItAndSigtermDoes)
{
    hold();
    test::Program run = cli.start(arguments());
    ASSERT_TRUE(test::eventually([&] { return !cached().empty(); }));
    run.signal(SIGHUP);
    run.signal(SIGTERM);
    const test::Finished finished = run.wait();
    EXPECT_EQ(finished.exitCode, 130);
    EXPECT_THAT(finished.errors, HasSubstr("Cancelled while the data were prepared"));
    EXPECT_TRUE(cached().empty());
}

TEST_F(Tokenise, whatIsWrongWithATokenizerMakesNothing)
{
    std::vector<std::string> all = arguments();
    all.insert(all.end(), {"--set", "data.separator=none", "--set", "data.tokenizer=/nowhere/tokenizer.json"});
    const test::Finished finished = cli.run(all);
    EXPECT_EQ(finished.exitCode, 2);
    EXPECT_THAT(finished.errors, AllOf(HasSubstr("There is no /nowhere/tokenizer.json"), HasSubstr("data.tokenizer")));
    EXPECT_FALSE(fs::exists(cli.runs() / "mine"));
}
