// SPDX-License-Identifier: Apache-2.0
#include "tests/files/example_checkpoint.h"
#include "tests/files/temporary_folder.h"

#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::files;
using ::testing::HasSubstr;

namespace {

class RankFile : public ::testing::Test
{
protected:
    void SetUp() override { m_entry = shardscope::testing::writeExampleRank(m_folder.path(), m_manifest, 1).front(); }

    std::string openError(const std::string &id = "id-of-3") const
    {
        const auto file = openRankFile(m_folder.path(), m_entry, id);
        return file ? "" : file.error().text;
    }

    shardscope::testing::TemporaryFolder m_folder;
    Manifest m_manifest = shardscope::testing::exampleManifest(3);
    FileEntry m_entry;
};

TEST_F(RankFile, SectionsAndBlobsBeginAtWholePages)
{
    ASSERT_EQ(m_entry.sections.size(), 4U);
    for (const SectionEntry &section : m_entry.sections)
        EXPECT_EQ(section.offsetBytes % 4096, 0) << section.bucket;
    EXPECT_EQ(m_entry.blobs.at(0).offsetBytes % 4096, 0);
    EXPECT_EQ(std::filesystem::file_size(m_folder.path() / "rank-1.bin"), static_cast<uintmax_t>(m_entry.sizeBytes));
}

TEST_F(RankFile, IsKnownByItsFirstPage)
{
    EXPECT_EQ(openError(), "");
    EXPECT_EQ(openError(""), ""); // the first version had none
    EXPECT_THAT(openError("id-of-4"), HasSubstr("it is rank 1's of another checkpoint, of step 3"));
    m_entry.rank = 0;
    EXPECT_THAT(openError(), HasSubstr("it is rank 1's: files were exchanged or renamed"));
}

TEST_F(RankFile, ATruncatedOrMissingOrForeignFileIsRefused)
{
    const auto path = m_folder.path() / "rank-1.bin";
    std::filesystem::resize_file(path, static_cast<uintmax_t>(m_entry.sizeBytes) - 4);
    EXPECT_THAT(openError(), HasSubstr("it was cut off or replaced"));
    std::filesystem::resize_file(path, 0);
    std::filesystem::resize_file(path, static_cast<uintmax_t>(m_entry.sizeBytes));
    EXPECT_THAT(openError(), HasSubstr("it is no file of a Shardscope checkpoint"));
    std::filesystem::remove(path);
    EXPECT_THAT(openError(), HasSubstr("rank-1.bin: No such file"));
}

TEST(RankFileWriterTest, AFullDiskIsSaid)
{
    // /dev/full answers every write as a full disk does.
    const shardscope::testing::TemporaryFolder folder;
    std::filesystem::create_symlink("/dev/full", folder.path() / "rank-0.bin");
    const auto writer = RankFileWriter::create(folder.path(), {"id", 1, 0});
    ASSERT_FALSE(writer);
    EXPECT_THAT(writer.error().text, HasSubstr("No space left on device. Free some space"));
}

TEST(RankFileWriterTest, ASectionIsReadAndSummedChunkByChunk)
{
    const shardscope::testing::TemporaryFolder folder;
    auto writer = RankFileWriter::create(folder.path(), {"id", 1, 0}).value();
    std::vector<std::byte> chunk(static_cast<size_t>(kChunkBytes), std::byte{7});
    std::vector<std::pair<int64_t, int64_t>> asked;
    const int64_t elements = kChunkBytes / 4 + 5;
    ASSERT_TRUE(writer.append("b", "master", {0, elements}, 4, [&](int64_t offset, int64_t size) {
        asked.emplace_back(offset, size);
        return std::span<const std::byte>(chunk).first(static_cast<size_t>(size));
    }));
    EXPECT_EQ(asked, (std::vector<std::pair<int64_t, int64_t>>{{0, kChunkBytes}, {kChunkBytes, 20}}));
    EXPECT_EQ(writer.finish().value().sections.at(0).checksums.size(), 2U);
    const auto failed = writer.append("b", "exp_avg", {0, 4}, 4, [](int64_t, int64_t) {
        return Result<std::span<const std::byte>>(fail("the device is gone"));
    });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().text, "the device is gone");
}

} // namespace
