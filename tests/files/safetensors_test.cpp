// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/files/safetensors.h"
#include "tests/files/temporary_folder.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::files;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

std::vector<SafeTensorSpec> twoTensors()
{
    return {{"a.weight", TensorType::F32, {2, 3}}, {"b", TensorType::Bf16, {}}};
}

/// The message on a file with that header and so many bytes of data after it.
std::string refusal(const std::string &header, size_t dataBytes)
{
    const auto parsed = parseSafetensorsHeader(header, static_cast<int64_t>(8 + header.size() + dataBytes), "m.st");
    return parsed ? "" : parsed.error().text;
}

std::string tensorJson(const std::string &name, const std::string &dtype, const std::string &shape,
                       const std::string &offsets)
{
    return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

TEST(Safetensors, PiecesInAnyOrderReadBackByRanges)
{
    const shardscope::testing::TemporaryFolder folder;
    const auto path = folder.path() / "m.safetensors";
    auto writer = SafetensorsWriter::create(path, planSafetensors(twoTensors(), {{"format", "pt"}})).value();
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    const uint16_t half = 0x3f80;
    const auto bytes = std::as_bytes(std::span(values));
    ASSERT_TRUE(writer.write(1, 0, std::as_bytes(std::span(&half, 1))));
    ASSERT_TRUE(writer.write(0, 12, bytes.subspan(12)));
    ASSERT_FALSE(writer.finish()); // half of a.weight is not there yet
    ASSERT_TRUE(writer.write(0, 0, bytes.first(12)));
    ASSERT_TRUE(writer.finish());

    const auto reader = SafetensorsReader::open(path);
    ASSERT_TRUE(reader) << reader.error().text;
    EXPECT_EQ(reader->metadata().at("format"), "pt");
    ASSERT_EQ(reader->tensors().size(), 2U);
    EXPECT_EQ(reader->tensors(), writer.header().tensors);
    EXPECT_EQ(reader->tensors()[0].offsetBytes % 4096, 0);
    std::vector<float> middle(2);
    ASSERT_TRUE(reader->read(*reader->find("a.weight"), 8, std::as_writable_bytes(std::span(middle))));
    EXPECT_EQ(middle, (std::vector<float>{3, 4}));
    EXPECT_EQ(reader->find("c"), nullptr);
    EXPECT_FALSE(reader->read(*reader->find("a.weight"), 20, std::as_writable_bytes(std::span(middle))));
}

TEST(Safetensors, OthersJoinAFileThatOneMade)
{
    const shardscope::testing::TemporaryFolder folder;
    const auto path = folder.path() / "m.safetensors";
    const SafetensorsPlan plan = planSafetensors({{"w", TensorType::U8, {4}}}, {});
    auto first = SafetensorsWriter::create(path, plan).value();
    auto second = SafetensorsWriter::join(path, plan).value();
    const std::string text = "abcd";
    ASSERT_TRUE(first.write(0, 0, std::as_bytes(std::span(text)).first(2)));
    ASSERT_TRUE(second.write(0, 2, std::as_bytes(std::span(text)).subspan(2)));
    ASSERT_TRUE(first.finishOwnPart());
    ASSERT_TRUE(second.finishOwnPart());
    EXPECT_TRUE(readTextFile(path).value().ends_with("abcd"));
    EXPECT_TRUE(SafetensorsReader::open(path));
    EXPECT_FALSE(SafetensorsWriter::join(folder.path() / "none", plan));
}

TEST(Safetensors, AFullDiskIsSaid)
{
    const shardscope::testing::TemporaryFolder folder;
    std::filesystem::create_symlink("/dev/full", folder.path() / "m.safetensors");
    const auto writer = SafetensorsWriter::create(folder.path() / "m.safetensors", planSafetensors(twoTensors(), {}));
    ASSERT_FALSE(writer);
    EXPECT_THAT(writer.error().text, HasSubstr("No space left on device. Free some space"));
}

TEST(SafetensorsHeaderTest, ForeignAndTruncatedFilesAreRefused)
{
    const shardscope::testing::TemporaryFolder folder;
    const auto path = folder.path() / "m.safetensors";
    const auto errorOf = [&](const std::string &content) {
        std::ofstream(path, std::ios::binary) << content;
        const auto reader = SafetensorsReader::open(path);
        return reader ? "" : reader.error().text;
    };
    EXPECT_THAT(errorOf("PK\3\4"), HasSubstr("it has 4 bytes"));
    EXPECT_THAT(errorOf("PK\3\4 and a long text that is no safetensors file"), HasSubstr("announces a header of"));
    EXPECT_THAT(errorOf(std::string("\x02\0\0\0\0\0\0\0[]", 10)), HasSubstr("does not begin with {"));
    EXPECT_EQ(errorOf(std::string("\x02\0\0\0\0\0\0\0{}", 10)), "");
    EXPECT_THAT(errorOf(std::string("\x02\0\0\0\0\0\0\0{}x", 11)), HasSubstr("end at byte 10 of 11"));
    EXPECT_FALSE(SafetensorsReader::open(folder.path()));
    EXPECT_FALSE(SafetensorsReader::open(folder.path() / "none"));
}

TEST(SafetensorsHeaderTest, HostileHeadersAreRefused)
{
    EXPECT_EQ(refusal("{" + tensorJson("a", "F32", "[2]", "[0,8]") + "}", 8), "");
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[2]", "[0,8]") + "}", 4), HasSubstr("bytes 0 to 8 of 4"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[3]", "[0,8]") + "}", 8), HasSubstr("ask for 12"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[4611686018427387904,4]", "[0,0]") + "}", 0),
                HasSubstr("more than there can be"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[-1,-2]", "[0,8]") + "}", 8), HasSubstr("-1 is negative"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[2]", "[-8,0]") + "}", 8), HasSubstr("-8 is negative"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[2]", "[8,0]") + "}", 8), HasSubstr("bytes 8 to 0"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[2]", "[0,18446744073709551608]") + "}", 8),
                HasSubstr("too large"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F32", "[1.5]", "[0,8]") + "}", 8), HasSubstr("no whole number"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "F4", "[2]", "[0,8]") + "}", 8), HasSubstr("dtype F4"));
    const std::string twice = "{" + tensorJson("a", "U8", "[4]", "[0,4]") + "," + tensorJson("a", "U8", "[4]", "[4,8]");
    EXPECT_THAT(refusal(twice + "}", 8), HasSubstr("names a twice"));
    const std::string first = "{" + tensorJson("a", "U8", "[4]", "[0,4]") + ",";
    EXPECT_THAT(refusal(first + tensorJson("b", "U8", "[4]", "[2,6]") + "}", 8), HasSubstr("b overlaps"));
    EXPECT_THAT(refusal(first + tensorJson("b", "U8", "[3]", "[5,8]") + "}", 8), HasSubstr("b leaves a gap"));
    EXPECT_THAT(refusal("{" + tensorJson("a", "U8", "[4]", "[0,4]") + "}", 8), HasSubstr("end at byte"));
    EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1]}})", 1), HasSubstr("data_offsets"));
    EXPECT_THAT(refusal(R"({"__metadata__":{"n":1}})", 0), HasSubstr("must be string"));
    EXPECT_THAT(refusal(std::string(200, '{'), 0), HasSubstr("no whole safetensors file"));
    std::string deep = R"({"a":)";
    for (int i = 0; i < 100000; ++i)
        deep += "[";
    EXPECT_THAT(refusal(deep, 0), HasSubstr("nested too deeply"));
}

} // namespace
