// SPDX-License-Identifier: Apache-2.0
#include "tests/files/example_checkpoint.h"
#include "tests/files/temporary_folder.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::files;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

class CheckpointFolderTest : public ::testing::Test
{
protected:
    std::vector<int64_t> wholeSteps() const
    {
        std::vector<int64_t> steps;
        for (const CheckpointInfo &info : m_folder.whole())
            steps.push_back(info.step);
        return steps;
    }
    std::vector<std::string> names() const
    {
        std::vector<std::string> all;
        for (const auto &entry : std::filesystem::directory_iterator(m_root))
            all.push_back(entry.path().filename().string());
        std::ranges::sort(all);
        return all;
    }

    shardscope::testing::TemporaryFolder m_temporary;
    std::filesystem::path m_root = m_temporary.path() / "checkpoints";
    CheckpointFolder m_folder{m_root};
};

TEST_F(CheckpointFolderTest, NothingIsThereAtFirst)
{
    EXPECT_THAT(wholeSteps(), IsEmpty());
    EXPECT_FALSE(m_folder.newest());
}

TEST_F(CheckpointFolderTest, WhatIsCommittedIsWhole)
{
    const auto path = shardscope::testing::writeExample(m_folder, 200);
    EXPECT_EQ(path.filename(), "step-000200");
    EXPECT_THAT(names(), ElementsAre("step-000200"));
    EXPECT_THAT(wholeSteps(), ElementsAre(200));
    EXPECT_EQ(CheckpointFolder::readManifest(path).value().data.nextSample, 800);
}

TEST_F(CheckpointFolderTest, WhatWasBrokenOffIsNotSeenAndIsSwept)
{
    ASSERT_TRUE(m_folder.begin(5));
    shardscope::testing::writeExampleRank(m_folder.partialPathOf(5), shardscope::testing::exampleManifest(5), 0);
    EXPECT_THAT(wholeSteps(), IsEmpty());
    shardscope::testing::writeExample(m_folder, 6);
    EXPECT_THAT(names(), ElementsAre("step-000006"));
}

TEST_F(CheckpointFolderTest, DiscardLeavesNothing)
{
    ASSERT_TRUE(m_folder.begin(5));
    m_folder.discard(5);
    EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CheckpointFolderTest, ADamagedOneIsNotTheNewest)
{
    shardscope::testing::writeExample(m_folder, 1);
    const auto second = shardscope::testing::writeExample(m_folder, 2);
    const auto third = shardscope::testing::writeExample(m_folder, 3);
    std::filesystem::resize_file(third / "rank-0.bin", 10);
    std::ofstream(second / "manifest.json") << "{";
    EXPECT_THAT(wholeSteps(), ElementsAre(1));
    EXPECT_EQ(m_folder.newest()->step, 1);
}

TEST_F(CheckpointFolderTest, PruneKeepsTheLastOnesAndNeverFewerThanOne)
{
    for (int64_t step : {1, 2, 3, 4})
        shardscope::testing::writeExample(m_folder, step);
    ASSERT_TRUE(m_folder.prune(2));
    EXPECT_THAT(names(), ElementsAre("step-000003", "step-000004"));
    ASSERT_TRUE(m_folder.prune(0));
    EXPECT_THAT(names(), ElementsAre("step-000004"));
}

TEST_F(CheckpointFolderTest, ADamagedOneDoesNotCountAsKept)
{
    for (int64_t step : {1, 2, 3})
        shardscope::testing::writeExample(m_folder, step);
    std::filesystem::remove(m_folder.pathOf(3) / "rank-1.bin");
    ASSERT_TRUE(m_folder.prune(1));
    EXPECT_THAT(wholeSteps(), ElementsAre(2));
}

TEST_F(CheckpointFolderTest, TheSameStepAgainReplacesTheOld)
{
    shardscope::testing::writeExample(m_folder, 7);
    const auto path = shardscope::testing::writeExample(m_folder, 7);
    EXPECT_THAT(names(), ElementsAre("step-000007"));
    EXPECT_TRUE(CheckpointFolder::readManifest(path));
}

TEST_F(CheckpointFolderTest, NewestIsByTheTimeOfWriting)
{
    // After a return to an earlier step the abandoned later one is older.
    shardscope::testing::writeExample(m_folder, 300);
    Manifest manifest = shardscope::testing::exampleManifest(250);
    manifest.createdNs = 99999;
    ASSERT_TRUE(m_folder.begin(250));
    ASSERT_TRUE(m_folder.commit(shardscope::testing::writeExampleFiles(m_folder.partialPathOf(250), manifest)));
    EXPECT_EQ(m_folder.newest()->step, 250);
    ASSERT_TRUE(m_folder.prune(1));
    EXPECT_THAT(names(), ElementsAre("step-000250"));
}

TEST_F(CheckpointFolderTest, TheLastOneWrittenIsTheNewestWhateverTheClockSays)
{
    shardscope::testing::writeExample(m_folder, 300); // its time is later than that of the next
    shardscope::testing::writeExample(m_folder, 20);
    EXPECT_EQ(m_folder.newest()->step, 20);
    ASSERT_TRUE(m_folder.prune(1));
    EXPECT_THAT(names(), ElementsAre("step-000020"));
}

TEST_F(CheckpointFolderTest, OneThatWasBeingReplacedIsStillThere)
{
    const auto path = shardscope::testing::writeExample(m_folder, 7);
    std::filesystem::rename(path, m_root / ".step-000007.old"); // the power went between two renames
    EXPECT_THAT(wholeSteps(), ElementsAre(7));
    ASSERT_TRUE(m_folder.begin(8));
    m_folder.discard(8);
    EXPECT_THAT(names(), ElementsAre("step-000007"));
    EXPECT_THAT(wholeSteps(), ElementsAre(7));
}

TEST_F(CheckpointFolderTest, WhatWasReplacedOrBeingDeletedIsSwept)
{
    const auto path = shardscope::testing::writeExample(m_folder, 7);
    std::filesystem::copy(path, m_root / ".step-000007.old", std::filesystem::copy_options::recursive);
    std::filesystem::copy(path, m_root / ".step-000006.gone", std::filesystem::copy_options::recursive);
    EXPECT_THAT(wholeSteps(), ElementsAre(7));
    ASSERT_TRUE(m_folder.begin(8));
    m_folder.discard(8);
    EXPECT_THAT(names(), ElementsAre("step-000007"));
}

TEST_F(CheckpointFolderTest, NamesTheDamagedOnesThatWouldBeTheNewest)
{
    const auto first = shardscope::testing::writeExample(m_folder, 1);
    EXPECT_THAT(m_folder.damagedAfterNewest(), IsEmpty());
    shardscope::testing::writeExample(m_folder, 2);
    const auto third = shardscope::testing::writeExample(m_folder, 3);
    std::filesystem::remove(first / "rank-0.bin");
    std::filesystem::remove(third / "rank-0.bin");
    std::filesystem::create_directory(m_root / "step-1000000");
    EXPECT_THAT(m_folder.damagedAfterNewest(), ElementsAre(third, m_root / "step-1000000"));
}

TEST_F(CheckpointFolderTest, AFileInTheWayIsAnError)
{
    std::ofstream(m_root) << "no folder";
    const auto begun = m_folder.begin(1);
    ASSERT_FALSE(begun);
    EXPECT_THAT(begun.error().text, ::testing::HasSubstr("Can't make"));
}

} // namespace
