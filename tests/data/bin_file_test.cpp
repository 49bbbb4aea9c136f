// SPDX-License-Identifier: Apache-2.0
// Which width the tokens of a .bin have, and what is said where it is the wrong one.
#include "core/data/bin_file.h"
#include "core/data/token_source.h"
#include "tests/data/tokenizer_fixture.h"

#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::data;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

class BinFileTest : public testing::Test
{
protected:
    void SetUp() override { fs::create_directories(folder); }
    void TearDown() override { fs::remove_all(folder); }
    template <typename T>
    fs::path write(const fs::path &name, const std::vector<T> &tokens, std::span<const std::byte> header = {})
    {
        std::ofstream out(folder / name, std::ios::binary);
        out.write(reinterpret_cast<const char *>(header.data()), std::ssize(header));
        out.write(reinterpret_cast<const char *>(tokens.data()),
                  static_cast<std::streamsize>(tokens.size() * sizeof(T)));
        return folder / name;
    }
    const fs::path folder = fs::path(testing::TempDir()) / fmt::format("bin_file {}", ::getpid());
};

/// Ids that look like text's: none is zero.
template <typename T>
std::vector<T> ids(size_t count, uint32_t below)
{
    std::vector<T> tokens(count);
    for (size_t i = 0; i < count; ++i)
        tokens[i] = static_cast<T>(1 + i * 7919 % (below - 1));
    return tokens;
}

template <typename T>
std::vector<int64_t> wide(const std::vector<T> &tokens)
{
    return {tokens.begin(), tokens.end()};
}

} // namespace

TEST_F(BinFileTest, withoutAHeaderTheVocabularyDecides)
{
    const auto narrow = ids<uint16_t>(1000, 32000);
    const auto large = ids<uint32_t>(1000, 128'000);
    EXPECT_EQ(tokensOf({.path = write("16.bin", narrow), .vocabulary = 65536}), wide(narrow));
    EXPECT_EQ(tokensOf({.path = write("32.bin", large), .vocabulary = 128'256}), wide(large));
}

TEST_F(BinFileTest, theKeyDecidesBeforeTheVocabulary)
{
    const auto narrow = ids<uint16_t>(1000, 32000);
    const auto large = ids<uint32_t>(1000, 32000);
    EXPECT_EQ(tokensOf({.path = write("16.bin", narrow), .vocabulary = 128'256, .tokenBytes = 2}), wide(narrow));
    EXPECT_EQ(tokensOf({.path = write("32.bin", large), .vocabulary = 32000, .tokenBytes = 4}), wide(large));
    EXPECT_THAT(messageOf({.path = folder / "16.bin", .tokenBytes = 3}), HasSubstr("neither 2 (uint16) nor 4"));
}

TEST_F(BinFileTest, aHeaderOfLlmCDecidesBeforeAll)
{
    const auto narrow = ids<uint16_t>(11, 32000);
    const auto large = ids<uint32_t>(11, 128'000);
    std::vector<int32_t> header(256);
    header[0] = 20240520;
    header[1] = 1;
    header[2] = 11;
    EXPECT_EQ(tokensOf({.path = write("16.bin", narrow, std::as_bytes(std::span(header))), .vocabulary = 128'256}),
              wide(narrow));
    EXPECT_THAT(messageOf({.path = folder / "16.bin", .tokenBytes = 4}),
                HasSubstr("by which its tokens have 2 bytes each, and data.token_bytes is 4"));
    header[0] = 20240801;
    header[1] = 7;
    EXPECT_EQ(tokensOf({.path = write("32.bin", large, std::as_bytes(std::span(header))), .vocabulary = 128'256}),
              wide(large));
    header[2] = 12;
    EXPECT_THAT(messageOf({.path = write("cut.bin", large, std::as_bytes(std::span(header))), .vocabulary = 128'256}),
                HasSubstr("its header speaks of 12 tokens of 4 bytes, and 44 bytes follow it"));
}

TEST_F(BinFileTest, aHeaderIsReadAsItWasWritten)
{
    const BinHeader written{TokenWidth::Uint32, (int64_t{1} << 33) + 5, BinHeader::Cache{{1, 2}, 3, 4}};
    const auto read = decodeBinHeader(encode(written));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->width, written.width);
    EXPECT_EQ(read->tokens, written.tokens);
    EXPECT_EQ(read->cache, written.cache);
    EXPECT_FALSE(decodeBinHeader(std::vector<std::byte>(BinHeader::kBytes)));
    EXPECT_FALSE(decodeBinHeader(std::span<const std::byte>(encode(written)).first(100)));
}

TEST_F(BinFileTest, wideTokensReadAsNarrowOnesAreNoticed)
{
    EXPECT_THAT(
        messageOf({.path = write("32.bin", ids<uint32_t>(1000, 32000)), .vocabulary = 32000}),
        AllOf(HasSubstr("32.bin: read as uint16, every second token has id 0"), HasSubstr("set data.token_bytes = 4")));
    EXPECT_THAT(messageOf({.path = write("64.bin", ids<int64_t>(1000, 32000)), .vocabulary = 32000}),
                HasSubstr("8 bytes (int64)"));
    EXPECT_THAT(messageOf({.path = folder / "64.bin", .vocabulary = 32000, .tokenBytes = 4}),
                HasSubstr("8 bytes (int64)"));
    // One zero less, and it may be what it seems to be.
    auto tokens = ids<uint32_t>(1000, 32000);
    tokens[900] |= 1 << 16;
    EXPECT_EQ(messageOf({.path = write("real.bin", tokens), .vocabulary = 32000}), "opened");
}

TEST_F(BinFileTest, narrowTokensReadAsWideOnesAreNoticed)
{
    const fs::path path = write("16.bin", ids<uint16_t>(1000, 32000));
    EXPECT_THAT(
        messageOf({.path = path, .vocabulary = 128'256}),
        AllOf(HasSubstr("16.bin: the token at position 0 has id 519045121"), HasSubstr("data.token_bytes = 2")));
    EXPECT_THAT(messageOf({.path = write("odd.bin", ids<uint16_t>(999, 32000)), .vocabulary = 128'256}),
                AllOf(HasSubstr("has 1998 bytes, and tokens of 4 bytes each were expected"),
                      HasSubstr("data.token_bytes = 2")));
}

TEST_F(BinFileTest, aWideIdBeyondTheVocabularyIsNamedWithItsPosition)
{
    auto tokens = ids<uint32_t>(200'000, 128'000);
    tokens[150'001] = 128'256;
    const fs::path path = write("32.bin", tokens);
    EXPECT_THAT(
        messageOf({.path = path, .vocabulary = 128'256}),
        AllOf(HasSubstr(path.string()), HasSubstr("position 150001 has id 128256"), HasSubstr("ends at 128255")));
}

TEST_F(BinFileTest, aTokenizerIsNotNeededAndThisIsSaid)
{
    const auto source = openTokens({.path = write("16.bin", ids<uint16_t>(100, 32000)), .tokenizer = "bytes"});
    ASSERT_TRUE(source) << source.error().text;
    EXPECT_THAT(source->remarks, HasSubstr("data.tokenizer is not needed"));
}
