// SPDX-License-Identifier: Apache-2.0
#include "tests/files/example_checkpoint.h"
#include "tests/files/temporary_folder.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::files;
using ::testing::HasSubstr;

namespace {

class RankFile : public ::testing::Test
{
protected:
    void SetUp() override { m_entry = shardscope::testing::writeExampleRank(m_folder.path(), m_manifest, 1); }

    std::filesystem::path file() const { return m_folder.path() / "rank-1.bin"; }
    std::string readError(const std::string &bucket, const std::string &state, size_t elements) const
    {
        std::vector<float> values(elements);
        const auto reader = RankFileReader::open(m_folder.path(), m_entry);
        if (!reader)
            return reader.error().text;
        const auto done = reader->read(bucket, state, std::as_writable_bytes(std::span(values)));
        return done ? "" : done.error().text;
    }

    shardscope::testing::TemporaryFolder m_folder;
    Manifest m_manifest = shardscope::testing::exampleManifest(3);
    FileEntry m_entry;
};

TEST_F(RankFile, ReadsBackWhatWasWritten)
{
    const auto reader = RankFileReader::open(m_folder.path(), m_entry).value();
    for (const BucketEntry &bucket : m_manifest.buckets) {
        for (const std::string &state : bucket.states) {
            std::vector<float> values(static_cast<size_t>(bucket.sliceElements));
            ASSERT_TRUE(reader.read(bucket.name, state, std::as_writable_bytes(std::span(values))));
            EXPECT_EQ(values, shardscope::testing::exampleSlice(bucket, state, 1));
        }
    }
}

TEST_F(RankFile, SectionsBeginAtWholePages)
{
    for (const SectionEntry &section : m_entry.sections)
        EXPECT_EQ(section.offsetBytes % 4096, 0) << section.bucket;
    EXPECT_EQ(std::filesystem::file_size(file()), static_cast<uintmax_t>(m_entry.sizeBytes));
}

TEST_F(RankFile, AFlippedBitIsFoundAndNamed)
{
    const int64_t offset = m_entry.sections[2].offsetBytes + 1;
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(offset);
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(offset);
    stream.put(byte);
    stream.close();
    EXPECT_EQ(readError("embedding", "master", 4), "");
    const std::string error = readError("block.0", "master", 2);
    EXPECT_THAT(error, HasSubstr("rank-1.bin is damaged: master of block.0"));
    EXPECT_THAT(error, HasSubstr("Delete that checkpoint's folder"));
}

TEST_F(RankFile, ATruncatedFileIsRefused)
{
    std::filesystem::resize_file(file(), static_cast<uintmax_t>(m_entry.sizeBytes) - 4);
    EXPECT_THAT(readError("embedding", "master", 4), HasSubstr("it was cut off or replaced"));
}

TEST_F(RankFile, AMissingFileIsRefused)
{
    std::filesystem::remove(file());
    EXPECT_THAT(readError("embedding", "master", 4), HasSubstr("rank-1.bin: No such file"));
}

TEST_F(RankFile, ASectionOfAnotherSizeIsRefused)
{
    EXPECT_THAT(readError("embedding", "master", 5),
                HasSubstr("holds 16 B of embedding's master; this job needs 20 B"));
    EXPECT_THAT(readError("embedding", "exp_avg", 4), HasSubstr("has no exp_avg of embedding"));
}

TEST(RankFileWriterTest, AFullDiskIsSaid)
{
    // /dev/full answers every write as a full disk does.
    shardscope::testing::TemporaryFolder folder;
    std::filesystem::create_symlink("/dev/full", folder.path() / "rank-0.bin");
    auto writer = RankFileWriter::create(folder.path(), 0).value();
    const std::vector<float> values(4);
    const auto appended = writer.append("embedding", "master", std::as_bytes(std::span(values)));
    ASSERT_FALSE(appended);
    EXPECT_THAT(appended.error().text, HasSubstr("No space left on device. Free some space"));
}

} // namespace
