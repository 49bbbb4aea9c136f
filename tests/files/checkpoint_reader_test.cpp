// SPDX-License-Identifier: Apache-2.0
#include "tests/files/example_checkpoint.h"
#include "tests/files/temporary_folder.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::files;
using namespace shardscope::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// Both formats, written by two ranks.
class CheckpointReading : public ::testing::TestWithParam<CheckpointFormat>
{
protected:
    void SetUp() override { m_path = writeExample(CheckpointFolder(m_temporary.path() / "c"), 3, GetParam()); }

    std::vector<std::byte> read(const CheckpointReader::Part &part) const
    {
        auto reader = CheckpointReader::open(m_path).value();
        std::vector<std::byte> bytes(
            static_cast<size_t>(part.elements.size() * dtypeBytes(reader.dtypeOf(part.tensor, part.state))));
        const auto done = reader.read(part, bytes);
        EXPECT_TRUE(done) << done.error().text;
        return bytes;
    }
    std::string fault() const
    {
        auto reader = CheckpointReader::open(m_path);
        if (!reader)
            return reader.error().text;
        const auto verified = reader->verify(exampleParts());
        return verified ? "" : verified.error().text;
    }
    /// Flips a bit of a section's first byte.
    void flip(const std::string &bucket, const std::string &state) const
    {
        const Manifest manifest = CheckpointFolder::readManifest(m_path).value();
        for (const FileEntry &file : manifest.files) {
            for (const SectionEntry &section : file.sections) {
                if (section.bucket != bucket || section.state != state)
                    continue;
                std::fstream stream(m_path / file.name, std::ios::in | std::ios::out | std::ios::binary);
                stream.seekg(section.offsetBytes);
                const char byte = static_cast<char>(stream.get() ^ 0x10);
                stream.seekp(section.offsetBytes);
                stream.put(byte);
                return;
            }
        }
        FAIL() << "no such section";
    }
    bool full() const { return GetParam() == CheckpointFormat::Full; }

    TemporaryFolder m_temporary;
    std::filesystem::path m_path;
};

TEST_P(CheckpointReading, AnyRangeOfAnyTensorIsFound)
{
    for (const BucketEntry &bucket : exampleManifest(3).buckets) {
        for (const StateEntry &state : bucket.states) {
            for (const TensorEntry &tensor : bucket.tensors) {
                for (int64_t begin = 0; begin <= tensor.elements(); ++begin) {
                    for (int64_t end = begin; end <= tensor.elements(); ++end) {
                        const ElementSpan inBucket = {tensor.offsetElements + begin, tensor.offsetElements + end};
                        EXPECT_EQ(read({tensor.name, state.name, {begin, end}}), exampleBytes(bucket, state, inBucket))
                            << tensor.name << " " << state.name << " " << begin << " to " << end;
                    }
                }
            }
        }
    }
    EXPECT_EQ(fault(), "");
}

TEST_P(CheckpointReading, BlobsAreOfARank)
{
    auto reader = CheckpointReader::open(m_path).value();
    const auto bytes = reader.blob(1, "random.cpu").value();
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()), "random state of rank 1");
    EXPECT_TRUE(reader.blob(1, "random.cuda").value().empty());
    EXPECT_TRUE(reader.blob(2, "random.cpu").value().empty());
}

TEST_P(CheckpointReading, AllFlippedBitsAreNamedAtOnce)
{
    flip(full() ? "embedding.weight" : "embedding", "master");
    flip(full() ? "block.0.a" : "block.0", "momentum");
    EXPECT_THAT(fault(), AllOf(HasSubstr("master of embedding.weight"), HasSubstr("momentum of block.0.a"),
                               HasSubstr("does not match its checksum"), HasSubstr("Delete that checkpoint's folder"),
                               Not(HasSubstr("momentum of embedding.weight"))));
    // What is not damaged is still read; what is damaged is not.
    EXPECT_EQ(read({"block.0.a", "master", {0, 1}}).size(), 4U);
    auto reader = CheckpointReader::open(m_path).value();
    std::vector<std::byte> bytes(4);
    EXPECT_FALSE(reader.read({"embedding.weight", "master", {0, 1}}, bytes));
    EXPECT_FALSE(reader.read({"embedding.weight", "third", {0, 1}}, bytes));
    EXPECT_FALSE(reader.read({"block.0.a", "master", {0, 2}}, bytes)); // of another size than the buffer
}

TEST_P(CheckpointReading, FilesOfAnotherCheckpointAreRefused)
{
    const auto other = writeExample(CheckpointFolder(m_temporary.path() / "c"), 4, GetParam());
    const std::string name = full() ? "model.safetensors" : "rank-1.bin";
    std::filesystem::copy_file(other / name, m_path / name, std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(fault(), AllOf(HasSubstr(name), HasSubstr("another checkpoint")));
}

TEST_P(CheckpointReading, TruncatedAndMissingFilesAreNamed)
{
    const std::string first = full() ? "model.safetensors" : "rank-0.bin";
    const std::string second = full() ? "optimizer.safetensors" : "rank-1.bin";
    std::filesystem::resize_file(m_path / first, std::filesystem::file_size(m_path / first) - 1);
    std::filesystem::remove(m_path / second);
    EXPECT_THAT(fault(), AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("No such file")));
}

INSTANTIATE_TEST_SUITE_P(Formats, CheckpointReading,
                         ::testing::Values(CheckpointFormat::Sharded, CheckpointFormat::Full),
                         [](const auto &info) { return std::string(toText(info.param)); });

TEST(CheckpointReadingOfRanks, ExchangedFilesAreRefused)
{
    const TemporaryFolder temporary;
    const auto path = writeExample(CheckpointFolder(temporary.path()), 3);
    // Of one length, so that the first page alone tells them apart.
    std::filesystem::rename(path / "rank-0.bin", path / "x");
    std::filesystem::rename(path / "rank-1.bin", path / "rank-0.bin");
    std::filesystem::rename(path / "x", path / "rank-1.bin");
    auto manifest = CheckpointFolder::readManifest(path).value();
    for (const char *name : {"rank-0.bin", "rank-1.bin"})
        std::filesystem::resize_file(path / name, static_cast<uintmax_t>(manifest.files[0].sizeBytes));
    auto reader = CheckpointReader::open(path).value();
    const auto verified = reader.verify(exampleParts());
    ASSERT_FALSE(verified);
    EXPECT_THAT(verified.error().text, AllOf(HasSubstr("rank-0.bin is not what its manifest says: it is rank 1's"),
                                             HasSubstr("rank-1.bin is not what its manifest says: it is rank 0's")));
}

} // namespace
