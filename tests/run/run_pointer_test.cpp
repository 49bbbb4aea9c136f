// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_list.h"
#include "core/run/run_pointer.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::run;
using test::TemporaryFolder;

class RunPointer : public testing::Test
{
protected:
    RunFolder makeRun(const fs::path &root, int64_t startedNs = 0) const
    {
        const RunFolder folder(root);
        fs::create_directories(root);
        RunStatus status;
        status.state = RunState::Done;
        status.startedNs = startedNs;
        EXPECT_TRUE(writeStatus(folder, status));
        return folder;
    }
    TemporaryFolder temporary;
    fs::path runs = temporary.path() / "runs";
    fs::path elsewhere = temporary.path() / "a disk" / "projects";
};

TEST_F(RunPointer, makesRunsElsewhereKnownByName)
{
    const RunFolder far = makeRun(elsewhere / "wide");
    makeRun(runs / "near");
    EXPECT_EQ(leavePointer(runs, far).value(), "wide");
    EXPECT_EQ(leavePointer(runs, far).value(), "wide") << "once is enough";
    EXPECT_EQ(findRun("wide", runs)->root(), far.root()) << "the folder, not the link to it";
    const auto all = listRuns(runs, 0);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "near");
    EXPECT_EQ(all[1].folder.root(), far.root());
}

TEST_F(RunPointer, isNotNeededForRunsOfTheDirectory)
{
    const RunFolder near = makeRun(runs / "near");
    EXPECT_EQ(leavePointer(runs, near).value(), "near");
    EXPECT_EQ(std::distance(fs::directory_iterator(runs), {}), 1);
}

TEST_F(RunPointer, numbersRunsOfTheSameName)
{
    makeRun(runs / "out");
    const RunFolder first = makeRun(elsewhere / "out");
    const RunFolder second = makeRun(elsewhere / "other" / "out", 7);
    EXPECT_EQ(leavePointer(runs, first).value(), "out-2");
    EXPECT_EQ(leavePointer(runs, second).value(), "out-3");
    EXPECT_EQ(findRun("out-3", runs)->root(), second.root());
    EXPECT_EQ(listRuns(runs, 0).front().shownName(), "out-3") << "as the verbs take it";
}

TEST_F(RunPointer, isDroppedWithItsRunAndKeptWithoutItsDisk)
{
    const RunFolder gone = makeRun(elsewhere / "gone");
    const RunFolder away = makeRun(temporary.path() / "mounted" / "runs" / "away");
    ASSERT_TRUE(leavePointer(runs, gone));
    ASSERT_TRUE(leavePointer(runs, away));
    fs::remove_all(gone.root());
    fs::rename(temporary.path() / "mounted", temporary.path() / "unmounted");
    EXPECT_TRUE(listRuns(runs, 0).empty());
    EXPECT_FALSE(findRun("gone", runs));
    ASSERT_TRUE(leavePointer(runs, makeRun(elsewhere / "new")));
    EXPECT_FALSE(fs::is_symlink(runs / "gone"));
    fs::rename(temporary.path() / "unmounted", temporary.path() / "mounted");
    EXPECT_EQ(findRun("away", runs)->root(), away.root());
}

TEST_F(RunPointer, followsLinksThatUsersMade)
{
    const RunFolder far = makeRun(elsewhere / "far");
    fs::create_directories(runs);
    fs::create_directory_symlink("../a disk/projects/far", runs / "mine");
    EXPECT_EQ(findRun("mine", runs)->root(), far.root());
    EXPECT_EQ(leavePointer(runs, far).value(), "mine");
}

TEST_F(RunPointer, needsADirectoryThatCanBeMade)
{
    const RunFolder far = makeRun(elsewhere / "far");
    fs::create_symlink("/dev/null", runs);
    EXPECT_FALSE(leavePointer(runs, far));
}
