// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/run/run_folder.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::run;
using shardscope::test::TemporaryFolder;
using testing::HasSubstr;

TEST(RunFolder, namesTheFilesOfTheContract)
{
    const RunFolder folder("/runs/a b");
    EXPECT_EQ(folder.name(), "a b");
    EXPECT_EQ(folder.stateFile(), "/runs/a b/state.json");
    EXPECT_EQ(folder.configFile(2), "/runs/a b/attempt-2/config.json");
    EXPECT_EQ(folder.rankDatabase(1, 3), "/runs/a b/attempt-1/rank-3.sqlite");
    EXPECT_EQ(folder.flightFile(1, 0), "/runs/a b/attempt-1/rank-0.flight");
    EXPECT_EQ(folder.logFile(1, 0), "/runs/a b/attempt-1/logs/rank-0.log");
}

TEST(RunFolder, keepsItsNameWithATrailingSlashOrAsADot)
{
    EXPECT_EQ(RunFolder("/runs/a/").name(), "a");
    EXPECT_EQ(RunFolder("/runs/a/.").name(), "a");
}

TEST(RunFolder, findsAttemptsInTheOrderOfTheirNumbers)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    EXPECT_EQ(folder.lastAttempt(), 0);
    for (int attempt : {10, 9, 1})
        ASSERT_TRUE(folder.createAttempt(attempt));
    fs::create_directory(temporary.path() / "attempt-x");
    fs::create_directory(temporary.path() / "attempt-3-old");
    EXPECT_THAT(folder.attempts(), testing::ElementsAre(1, 9, 10));
    EXPECT_EQ(folder.lastAttempt(), 10);
    EXPECT_TRUE(fs::is_directory(folder.logsFolder(10)));
    const auto again = folder.createAttempt(10);
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().text, HasSubstr("attempt-10 exists already"));
}

TEST(CreateRunFolder, makesItsParentsAndRefusesARunThatIsThere)
{
    const TemporaryFolder temporary;
    const fs::path root = temporary.path() / "new" / "run \"1\"";
    ASSERT_TRUE(createRunFolder(root));
    EXPECT_TRUE(createRunFolder(root)) << "an empty folder may be taken";
    ASSERT_TRUE(RunFolder(root).createAttempt(1));
    const auto again = createRunFolder(root);
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().text, HasSubstr("There is a run in"));
    EXPECT_THAT(again.error().text, HasSubstr("--resume"));
}

TEST(CreateRunFolder, leavesAFolderAloneThatHoldsSomethingElse)
{
    const TemporaryFolder temporary;
    ASSERT_TRUE(writeFileAtomically(temporary.path() / "thesis.tex", "all of it"));
    const auto made = createRunFolder(temporary.path());
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().text, HasSubstr("not empty"));
    EXPECT_THAT(made.error().text, HasSubstr("--out"));
}

TEST(CreateRunFolder, saysWhyItCannotBeWritten)
{
    const auto made = createRunFolder("/proc/run");
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().text, HasSubstr("/proc/run"));
    EXPECT_THAT(made.error().text, HasSubstr("--out"));
}

TEST(CreateRunFolder, leavesNoParentBehindWhereItFails)
{
    const TemporaryFolder temporary;
    const std::string tooLong(300, 'z');
    fs::create_directory(temporary.path() / "mine");
    for (const fs::path root : {"a/b/" + tooLong, "a/" + tooLong + "/b", "mine/a/" + tooLong}) {
        const auto made = createRunFolder(temporary.path() / root);
        ASSERT_FALSE(made) << root;
        EXPECT_THAT(made.error().text, HasSubstr("--out"));
    }
    ASSERT_FALSE(createNamedRun(temporary.path() / "a/runs", tooLong));
    EXPECT_EQ(entriesOf(temporary.path()), std::vector{temporary.path() / "mine"});
    EXPECT_TRUE(fs::is_empty(temporary.path() / "mine"));
}

TEST(CreateRunFolder, takesPathsOfTwoHundredAndFiftyCharacters)
{
    const TemporaryFolder temporary;
    fs::path root = temporary.path();
    while (root.native().size() < 200)
        root /= "a folder";
    root /= std::string(250 - root.native().size() - 1, 'x');
    ASSERT_EQ(root.native().size(), 250u);
    const auto folder = createRunFolder(root);
    ASSERT_TRUE(folder) << folder.error().text;
    EXPECT_TRUE(folder->createAttempt(1));
}

TEST(CreateNamedRun, numbersRunsOfTheSameName)
{
    const TemporaryFolder temporary;
    const fs::path runs = temporary.path() / "runs";
    EXPECT_EQ(createNamedRun(runs, "15m")->name(), "15m");
    EXPECT_EQ(createNamedRun(runs, "15m")->name(), "15m-2");
    EXPECT_EQ(createNamedRun(runs, "15m")->name(), "15m-3");
    EXPECT_EQ(createNamedRun(runs, "a/b")->name(), "a-b");
    EXPECT_FALSE(createNamedRun(runs, ".."));
}

TEST(DefaultRunName, isMadeOfModelRanksAndTime)
{
    EXPECT_THAT(defaultRunName("15m", 2, 1'700'000'000'000'000'000), testing::StartsWith("15m-2-ranks-2023111"));
    EXPECT_THAT(defaultRunName("tiny", 1, 0), testing::StartsWith("tiny-1-rank-19"));
}

TEST(FindRun, takesANameOrAPathAndNamesTheNearest)
{
    const TemporaryFolder temporary;
    const auto folder = createNamedRun(temporary.path(), "my run");
    ASSERT_TRUE(folder->createAttempt(1));
    EXPECT_EQ(findRun("my run", temporary.path())->root(), folder->root());
    EXPECT_EQ(findRun(folder->root().string(), "/nowhere")->root(), folder->root());
    EXPECT_EQ(findRun(folder->root().string() + "/", "/nowhere")->name(), "my run");
    const auto mistyped = findRun("my rum", temporary.path());
    ASSERT_FALSE(mistyped);
    EXPECT_THAT(mistyped.error().text, HasSubstr("Did you mean my run?"));
    const auto noRun = findRun(temporary.path().string(), temporary.path());
    ASSERT_FALSE(noRun);
    EXPECT_THAT(noRun.error().text, HasSubstr("is no run"));
    EXPECT_FALSE(findRun("", temporary.path()));
}
