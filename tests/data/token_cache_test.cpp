// SPDX-License-Identifier: Apache-2.0
// Kept tokens: found again, made anew where they are damaged, made once where several want them.
#include "core/data/dataset.h"
#include "tests/data/tokenizer_fixture.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::data;
using testing::EndsWith;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

class TokenCacheTest : public TokenizerFixture
{
protected:
    void SetUp() override
    {
        TokenizerFixture::SetUp();
        model = sentencePiece("a.model", "--model_type=bpe --vocab_size=400 --byte_fallback=true");
        asked = options(write("a.txt", longText()), model);
    }
    /// Opens, and tells which phases there were.
    std::set<DataPhase> phasesOf(DatasetOptions options)
    {
        std::set<DataPhase> phases;
        options.progress = [&](const DataProgress &progress) {
            phases.insert(progress.phase);
            return true;
        };
        const auto dataset = Dataset::open(options);
        EXPECT_TRUE(dataset) << dataset.error().text;
        description = dataset ? dataset->description() : "";
        return phases;
    }
    fs::path cacheFile() const { return folder / "cache" / cached().at(0); }
    fs::path model;
    DatasetOptions asked;
    std::string description;
};

const std::set<DataPhase> kMade = {DataPhase::Reading, DataPhase::Tokenising, DataPhase::Checking};
const std::set<DataPhase> kFound = {DataPhase::Reading, DataPhase::Checking};

} // namespace

TEST_F(TokenCacheTest, aSecondRunFindsTheTokensOfTheFirst)
{
    EXPECT_EQ(phasesOf(asked), kMade);
    ASSERT_EQ(cached().size(), 1);
    EXPECT_THAT(cached()[0], EndsWith(".bin"));
    const std::vector<int64_t> tokens = tokensOf(asked);
    EXPECT_EQ(phasesOf(asked), kFound);
    EXPECT_EQ(tokensOf(asked), tokens);
    // The same text under another name; and the file itself, which is a .bin as any other.
    DatasetOptions copy = asked;
    copy.path = write("copy.txt", longText());
    EXPECT_EQ(phasesOf(copy), kFound);
    DatasetOptions bin = asked;
    bin.path = cacheFile();
    bin.tokenizer = "";
    EXPECT_EQ(tokensOf(bin), tokens);
}

TEST_F(TokenCacheTest, whatChangesTheTokensChangesTheName)
{
    EXPECT_EQ(phasesOf(asked), kMade);
    write("a.txt", longText() + "!");
    EXPECT_EQ(phasesOf(asked), kMade);
    asked.separator = "none";
    EXPECT_EQ(phasesOf(asked), kMade);
    sentencePiece("a.model", "--model_type=bpe --vocab_size=390 --byte_fallback=true");
    EXPECT_EQ(phasesOf(asked), kMade);
    EXPECT_EQ(cached().size(), 4);
    // Two texts are other than the one that they are together.
    write("two/1.txt", "some ");
    write("two/2.txt", "words and more");
    asked.path = folder / "two";
    EXPECT_EQ(phasesOf(asked), kMade);
    asked.path = write("one.txt", "some words and more");
    EXPECT_EQ(phasesOf(asked), kMade);
}

TEST_F(TokenCacheTest, aDamagedFileIsNoticedAndMadeAnew)
{
    const std::vector<int64_t> tokens = tokensOf(asked);
    const auto sizeBytes = fs::file_size(cacheFile());
    const auto expectRepair = [&](const char *how) {
        SCOPED_TRACE(how);
        EXPECT_EQ(phasesOf(asked), kMade);
        EXPECT_THAT(description, HasSubstr("was damaged and was made anew"));
        EXPECT_EQ(tokensOf(asked), tokens);
        EXPECT_EQ(phasesOf(asked), kFound);
        EXPECT_EQ(cached().size(), 1);
    };
    fs::resize_file(cacheFile(), sizeBytes - 2);
    expectRepair("cut off");
    std::fstream(cacheFile(), std::ios::in | std::ios::out | std::ios::binary).seekp(5001).put('\xFF');
    expectRepair("a byte of the tokens changed");
    std::fstream(cacheFile(), std::ios::in | std::ios::out | std::ios::binary).seekp(80).put('\x7F');
    expectRepair("a byte of the header changed");
    fs::resize_file(cacheFile(), 0);
    expectRepair("empty");
}

TEST_F(TokenCacheTest, cancelledMidwayNothingIsLeft)
{
    for (const DataPhase when : {DataPhase::Reading, DataPhase::Tokenising}) {
        asked.progress = [&](const DataProgress &progress) { return progress.phase != when; };
        EXPECT_EQ(messageOf(asked), kCancelled);
        EXPECT_TRUE(cached().empty());
    }
    asked.progress = nullptr;
    EXPECT_EQ(phasesOf(asked), kMade);
    asked.progress = [&](const DataProgress &progress) { return progress.phase != DataPhase::Checking; };
    EXPECT_EQ(messageOf(asked), kCancelled);
    EXPECT_EQ(cached().size(), 1); // whole, and kept
}

TEST_F(TokenCacheTest, severalAtOnceMakeItOnce)
{
    static constexpr int kProcesses = 4;
    std::atomic<int> waiting = 0;
    std::atomic<int> made = 0;
    std::vector<std::vector<int64_t>> tokens(kProcesses);
    {
        std::vector<std::jthread> others;
        for (int i = 0; i < kProcesses; ++i) {
            others.emplace_back([&, i] {
                DatasetOptions own = asked;
                bool waits = false;
                bool makes = false;
                own.progress = [&](const DataProgress &progress) {
                    if (progress.phase == DataPhase::Waiting && !std::exchange(waits, true))
                        ++waiting;
                    if (progress.phase == DataPhase::Tokenising && !std::exchange(makes, true)) {
                        ++made;
                        // The one that makes it does so until all others wait.
                        while (made == 1 && waiting < kProcesses - 1)
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    }
                    return true;
                };
                tokens[static_cast<size_t>(i)] = tokensOf(own);
            });
        }
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(waiting, kProcesses - 1);
    EXPECT_EQ(cached().size(), 1);
    for (const auto &one : tokens)
        EXPECT_EQ(one, tokens[0]);
    EXPECT_FALSE(tokens[0].empty());
}

TEST_F(TokenCacheTest, aKilledProcessLeavesNoHalfCache)
{
    const pid_t child = ::fork();
    if (child == 0) {
        asked.progress = [](const DataProgress &progress) {
            if (progress.phase == DataPhase::Tokenising) // its file has been begun
                ::kill(::getpid(), SIGKILL);
            return true;
        };
        static_cast<void>(Dataset::open(asked));
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(cached().size(), 1);
    EXPECT_THAT(cached()[0], EndsWith(".partial"));
    // Another text's tokens clean up, as the same text's do.
    DatasetOptions other = asked;
    other.path = write("other.txt", "some other words, and a few more");
    EXPECT_EQ(phasesOf(other), kMade);
    ASSERT_EQ(cached().size(), 1);
    EXPECT_EQ(phasesOf(asked), kMade);
    EXPECT_EQ(cached().size(), 2);
}

TEST_F(TokenCacheTest, aFullDiskIsSaidAndLeavesNothing)
{
    // A limit on the size of files stands in for a full disk: the writer sees an error all the same.
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4096, 4096};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const std::string message = messageOf(asked);
        ::_exit(message.find("Can't write the tokens to") == 0 && message.find("XDG_CACHE_HOME") != std::string::npos
                    ? 0
                    : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE(cached().empty());
}

TEST_F(TokenCacheTest, aFolderThatCannotBeMadeIsSaid)
{
    asked.cacheFolder = write("file", "x") / "cache";
    EXPECT_THAT(messageOf(asked), HasSubstr("Can't write the tokens to"));
    EXPECT_THAT(messageOf(asked), HasSubstr("XDG_CACHE_HOME"));
}

TEST_F(TokenCacheTest, progressIsOfTheWholeText)
{
    int64_t before = 0;
    int64_t last = 0;
    asked.progress = [&](const DataProgress &progress) {
        EXPECT_LE(progress.doneBytes, progress.totalBytes);
        if (progress.phase == DataPhase::Tokenising) {
            EXPECT_GE(progress.doneBytes, before);
            before = progress.doneBytes;
            last = progress.totalBytes;
        }
        return true;
    };
    EXPECT_FALSE(tokensOf(asked).empty());
    EXPECT_EQ(last, std::ssize(longText()));
    EXPECT_EQ(toText({DataPhase::Tokenising, 1 << 20, 4 << 20, 1'000'000'000}),
              "Tokenising: 25 %, 1.00 MiB of 4.00 MiB, 1.00 MiB/s, 3 s left");
    EXPECT_EQ(toText({DataPhase::Reading, 0, 4 << 20, 0}), "Reading the texts: 0 %, 0 B of 4.00 MiB");
    EXPECT_EQ(toText({DataPhase::Waiting, 0, 0, 2'000'000'000}),
              "Another process makes the same tokens; waiting for it: 2.00 s");
}
