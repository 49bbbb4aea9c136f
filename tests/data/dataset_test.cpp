// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <map>
#include <numeric>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::data;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

class DatasetTest : public testing::Test
{
protected:
    void SetUp() override
    {
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    fs::path write(const fs::path &name, std::string_view text)
    {
        fs::create_directories((folder / name).parent_path());
        std::ofstream(folder / name, std::ios::binary) << text;
        return folder / name;
    }
    fs::path writeTokens(const fs::path &name, const std::vector<uint16_t> &tokens)
    {
        return write(name, {reinterpret_cast<const char *>(tokens.data()), 2 * tokens.size()});
    }
    static std::string messageOf(const DatasetOptions &options)
    {
        const auto dataset = Dataset::open(options);
        return dataset ? "opened" : dataset.error().text;
    }
    const fs::path folder = fs::path(testing::TempDir()) / fmt::format("data \"set\" дом {}", ::getpid());
    void TearDown() override { fs::remove_all(folder); }
};

std::vector<uint16_t> counting(size_t size)
{
    std::vector<uint16_t> tokens(size);
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
}

std::vector<int64_t> sampleOf(const Dataset &dataset, int64_t index)
{
    std::vector<int64_t> tokens(static_cast<size_t>(dataset.sequenceLength() + 1));
    dataset.sample(index, tokens);
    return tokens;
}

std::vector<int64_t> validationOf(const Dataset &dataset, int64_t index)
{
    std::vector<int64_t> tokens(static_cast<size_t>(dataset.sequenceLength() + 1));
    dataset.validationSample(index, tokens);
    return tokens;
}

} // namespace

TEST_F(DatasetTest, saysThatBytesUseLittleOfALargeVocabulary)
{
    const fs::path text = write("text", std::string(2000, 'a'));
    const auto adviceFor = [&](const fs::path &path, int64_t vocabulary) {
        return Dataset::open({.path = path, .vocabulary = vocabulary}).value().advice();
    };
    EXPECT_EQ(adviceFor(text, 512), "");
    EXPECT_THAT(adviceFor(text, 50304), HasSubstr("256 of the 50304 ids of the model's vocabulary"));
    EXPECT_THAT(describeData({.path = text, .vocabulary = 50304}).value(), HasSubstr("data.tokenizer"));
    EXPECT_EQ(adviceFor(writeTokens("tokens.bin", std::vector<uint16_t>(2000, 7)), 50304), "") << "no bytes";
}

TEST_F(DatasetTest, everyEpochVisitsEveryWindowOnceInAnOrderOfItsOwn)
{
    const auto dataset =
        Dataset::open({.path = writeTokens("a.bin", counting(10001)), .validationShare = 0.1, .sequenceLength = 10});
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_EQ(dataset->trainingWindows(), 900);
    EXPECT_EQ(dataset->validationWindows(), 100);
    std::map<int64_t, int> visits;
    bool differs = false;
    for (int64_t i = 0; i < 2 * 900; ++i) {
        const std::vector<int64_t> tokens = sampleOf(*dataset, i);
        ++visits[tokens[0]];
        for (size_t j = 1; j < tokens.size(); ++j)
            ASSERT_EQ(tokens[j], tokens[j - 1] + 1);
        differs |= i < 900 && tokens != sampleOf(*dataset, i + 900);
    }
    EXPECT_EQ(visits.size(), 900);
    for (const auto &[first, count] : visits) {
        EXPECT_EQ(count, 2) << first;
        EXPECT_EQ(first % 10, 0);
        EXPECT_LT(first, 9000);
    }
    EXPECT_TRUE(differs);
}

TEST_F(DatasetTest, aSampleIsAFunctionOfSeedAndIndex)
{
    const fs::path path = writeTokens("a.bin", counting(5001));
    const auto first = Dataset::open({.path = path, .sequenceLength = 10, .seed = 1});
    const auto again = Dataset::open({.path = path, .sequenceLength = 10, .seed = 1});
    const auto other = Dataset::open({.path = path, .sequenceLength = 10, .seed = 2});
    bool differs = false;
    for (int64_t i = 999; i >= 0; --i) {
        EXPECT_EQ(sampleOf(*first, i), sampleOf(*again, i));
        differs |= sampleOf(*first, i) != sampleOf(*other, i);
    }
    EXPECT_TRUE(differs);
}

TEST_F(DatasetTest, theTailIsHeldOutAndReadInOrder)
{
    const auto dataset =
        Dataset::open({.path = writeTokens("a.bin", counting(1001)), .validationShare = 0.1, .sequenceLength = 10});
    ASSERT_TRUE(dataset);
    ASSERT_EQ(dataset->validationWindows(), 10);
    for (int64_t i = 0; i < 10; ++i)
        EXPECT_EQ(validationOf(*dataset, i)[0], 900 + 10 * i);
    EXPECT_EQ(validationOf(*dataset, 9).back(), 1000);
}

TEST_F(DatasetTest, aSmallShareHoldsOneWindowOutAndNoneOfOne)
{
    const fs::path path = writeTokens("a.bin", counting(31));
    EXPECT_EQ(Dataset::open({.path = path, .sequenceLength = 10})->validationWindows(), 1);
    EXPECT_EQ(Dataset::open({.path = path, .validationShare = 0, .sequenceLength = 10})->validationWindows(), 0);
    const auto one = Dataset::open({.path = path, .validationShare = 0.5, .sequenceLength = 30});
    EXPECT_EQ(one->validationWindows(), 0);
    EXPECT_EQ(one->trainingWindows(), 1);
    EXPECT_EQ(sampleOf(*one, 5), sampleOf(*one, 0));
}

TEST_F(DatasetTest, textIsBytes)
{
    const auto dataset = Dataset::open({.path = write("a.txt", "aé\xff!"), .sequenceLength = 4});
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_EQ(sampleOf(*dataset, 0), (std::vector<int64_t>{97, 0xC3, 0xA9, 0xFF, 33}));
}

TEST_F(DatasetTest, aFolderIsItsTextFilesInTheOrderOfTheirPaths)
{
    write("texts/b/2.txt", "cd");
    write("texts/b/1.txt", "ab");
    write("texts/a \"quoted\".md", "XY");
    write("texts/z.png", std::string_view("\x89PNG\0", 5));
    write("texts/empty.txt", "");
    write("texts/.git/config", "hidden");
    const auto dataset = Dataset::open({.path = folder / "texts", .validationShare = 0, .sequenceLength = 7});
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_EQ(dataset->tokens(), 8); // a NUL between two texts
    EXPECT_EQ(sampleOf(*dataset, 0), (std::vector<int64_t>{'X', 'Y', 0, 'a', 'b', 0, 'c', 'd'}));
    EXPECT_THAT(dataset->description(), HasSubstr("3 text files"));
    EXPECT_THAT(dataset->description(), HasSubstr("left out: 1 binary file, 1 empty file"));
}

TEST_F(DatasetTest, largeFilesOfAFolderJoinSmallOnes)
{
    // 64 KiB and more are mapped, less is copied: windows cross from one into the other.
    std::string all;
    for (int i = 0; i < 6; ++i) {
        std::string text(static_cast<size_t>(i % 2 ? 70'000 : 333), '\0');
        for (size_t j = 0; j < text.size(); ++j)
            text[j] = static_cast<char>('a' + (j * 7 + static_cast<size_t>(i)) % 26);
        write(fs::path("mixed") / fmt::format("{}.txt", i), text);
        all += (i ? std::string(1, '\0') : "") + text;
    }
    const auto dataset = Dataset::open({.path = folder / "mixed", .validationShare = 0.5, .sequenceLength = 1000});
    ASSERT_TRUE(dataset) << dataset.error().text;
    for (int64_t i = 0; i < dataset->validationWindows(); ++i) {
        const std::vector<int64_t> tokens = validationOf(*dataset, i);
        const auto start = static_cast<size_t>((dataset->trainingWindows() + i) * 1000);
        EXPECT_EQ(std::string(tokens.begin(), tokens.end()), all.substr(start, 1001));
    }
}

TEST_F(DatasetTest, tokensOfLlmCHaveAHeader)
{
    std::vector<int32_t> header(256);
    header[0] = 20240520;
    header[1] = 1;
    header[2] = 11;
    std::string text(reinterpret_cast<const char *>(header.data()), 1024);
    const std::vector<uint16_t> tokens = counting(11);
    text.append(reinterpret_cast<const char *>(tokens.data()), 22);
    const auto dataset = Dataset::open({.path = write("a.bin", text), .sequenceLength = 10});
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_EQ(dataset->tokens(), 11);
    EXPECT_EQ(sampleOf(*dataset, 0)[0], 0);
}

TEST_F(DatasetTest, theFingerprintChangesWithAnyToken)
{
    std::vector<uint16_t> tokens = counting(60000);
    const auto before = Dataset::open({.path = writeTokens("a.bin", tokens), .vocabulary = 65536});
    const auto copy = Dataset::open({.path = writeTokens("b.bin", tokens), .vocabulary = 65536});
    tokens[31234] ^= 1;
    const auto after = Dataset::open({.path = writeTokens("a.bin", tokens), .vocabulary = 65536});
    EXPECT_EQ(before->fingerprint().sizeBytes, 120000);
    EXPECT_EQ(before->fingerprint().xxh3.size(), 16);
    EXPECT_EQ(before->fingerprint(), copy->fingerprint());
    EXPECT_NE(before->fingerprint(), after->fingerprint());
}

TEST_F(DatasetTest, badDataAreNamedWithTheRemedy)
{
    EXPECT_THAT(messageOf({.path = folder / "missing.txt"}),
                HasSubstr("There is no " + (folder / "missing.txt").string()));
    EXPECT_THAT(messageOf({.path = write("empty.txt", "")}), HasSubstr("empty.txt is empty"));
    EXPECT_THAT(messageOf({.path = write("empty.bin", "")}), HasSubstr("empty.bin is empty"));
    EXPECT_THAT(messageOf({.path = write("odd.bin", "abc")}), HasSubstr("has 3 bytes"));
    EXPECT_THAT(messageOf({.path = write("image.txt", std::string_view("a\0b", 3))}), HasSubstr("is not text"));
    EXPECT_THAT(messageOf({.path = "/dev/null"}), HasSubstr("neither a file nor a folder"));
    EXPECT_THAT(messageOf({.path = write("file", "x") / "below"}), HasSubstr("There is no"));
    EXPECT_THAT(messageOf({.path = write("short.txt", "12345"), .sequenceLength = 5}),
                HasSubstr("fewer than one sequence needs (5 + 1)"));
    EXPECT_EQ(messageOf({.path = write("right.txt", "123456"), .sequenceLength = 5}), "opened");
    fs::create_directories(folder / "nothing");
    EXPECT_THAT(messageOf({.path = folder / "nothing"}), HasSubstr("holds no text files"));
    writeTokens("bins/a.bin", counting(100));
    EXPECT_THAT(messageOf({.path = folder / "bins"}),
                HasSubstr("only 1 binary file. To train on tokens, name one .bin"));
}

TEST_F(DatasetTest, lessThanOneStepIsRefused)
{
    const fs::path path = writeTokens("a.bin", counting(71));
    EXPECT_THAT(messageOf({.path = path, .validationShare = 0, .sequenceLength = 10, .globalBatch = 8}),
                testing::AllOf(HasSubstr("only 7 sequences of 10 tokens"), HasSubstr("train.global_batch = 8")));
    EXPECT_EQ(messageOf({.path = path, .validationShare = 0, .sequenceLength = 10, .globalBatch = 7}), "opened");
    // One of the seven is held out.
    EXPECT_THAT(messageOf({.path = path, .sequenceLength = 10, .globalBatch = 7}), HasSubstr("only 6 sequences"));
}

TEST_F(DatasetTest, theSeparatorOfBytesCanBeChosen)
{
    write("texts/1.txt", "ab");
    write("texts/2.txt", "cd");
    DatasetOptions options{.path = folder / "texts", .validationShare = 0, .sequenceLength = 3};
    options.separator = "10";
    EXPECT_EQ(sampleOf(*Dataset::open(options), 0), (std::vector<int64_t>{'a', 'b', 10, 'c'}));
    options.separator = "none";
    EXPECT_EQ(sampleOf(*Dataset::open(options), 0), (std::vector<int64_t>{'a', 'b', 'c', 'd'}));
    options.separator = "256";
    EXPECT_THAT(messageOf(options), HasSubstr("a number from 0 to 255"));
    options.separator = "</s>";
    EXPECT_THAT(messageOf(options), HasSubstr("data.separator = </s>"));
    options.separator = "200";
    options.vocabulary = 128;
    EXPECT_THAT(messageOf(options), HasSubstr("separator between texts has id 200"));
}

TEST_F(DatasetTest, anUnreadableFileIsNamed)
{
    const fs::path path = write("texts/secret.txt", "secret");
    fs::permissions(path, fs::perms::none);
    // Root reads everything, so it looks with the eyes of nobody for a moment.
    const uid_t user = ::geteuid();
    ASSERT_TRUE(user != 0 || ::seteuid(65534) == 0);
    const std::string ofFile = messageOf({.path = path});
    const std::string ofFolder = messageOf({.path = folder / "texts"});
    ASSERT_EQ(::seteuid(user), 0);
    EXPECT_THAT(ofFile, HasSubstr("secret.txt: Permission denied"));
    EXPECT_THAT(ofFolder, HasSubstr("secret.txt: Permission denied"));
}

TEST_F(DatasetTest, aTokenBeyondTheVocabularyIsNamedWithFileAndPosition)
{
    std::vector<uint16_t> tokens(500'000, 511);
    tokens[400'001] = 512;
    tokens[400'002] = 600;
    const fs::path path = writeTokens("a.bin", tokens);
    const std::string message = messageOf({.path = path, .vocabulary = 512});
    EXPECT_THAT(message, HasSubstr(path.string()));
    EXPECT_THAT(message, HasSubstr("position 400001 has id 512"));
    EXPECT_THAT(message, HasSubstr("ends at 511"));
    EXPECT_EQ(messageOf({.path = path, .vocabulary = 601}), "opened");
    EXPECT_THAT(messageOf({.path = write("a.txt", "abc\xF0"), .sequenceLength = 2, .vocabulary = 128}),
                HasSubstr("position 3 has id 240"));
}

TEST_F(DatasetTest, theDefaultCorpusIsLicencesThenSourcesInAFixedOrder)
{
    write("usr/share/common-licenses/GPL-3", "GPL.");
    fs::create_symlink("GPL-3", folder / "usr/share/common-licenses/GPL");
    write("usr/lib/python3.11/b.py", "py b.");
    write("usr/lib/python3.11/a.py", "py a.");
    write("usr/lib/python3.11/a.pyc", "compiled");
    write("usr/share/perl/5.36.0/X.pm", "perl.");
    fs::create_symlink("5.36.0", folder / "usr/share/perl/5.36");
    write("usr/lib/x86_64-linux-gnu/perl-base/Y.pm", "base.");
    const auto dataset = Dataset::open({.validationShare = 0, .sequenceLength = 27, .systemRoot = folder});
    ASSERT_TRUE(dataset) << dataset.error().text;
    const std::vector<int64_t> tokens = sampleOf(*dataset, 0);
    EXPECT_EQ(std::string(tokens.begin(), tokens.end()), std::string("GPL.\0py a.\0py b.\0perl.\0base.", 28));
    EXPECT_THAT(dataset->description(), HasSubstr("1 licence texts, 2 Python sources, 2 Perl sources"));
    EXPECT_THAT(messageOf({.systemRoot = folder / "usr/share"}), HasSubstr("with --data"));
}

TEST_F(DatasetTest, theDefaultCorpusOfThisMachineTrains)
{
    if (!fs::exists("/usr/share/common-licenses"))
        GTEST_SKIP() << "this machine has no licence texts";
    const auto dataset = Dataset::open({.sequenceLength = 256, .vocabulary = 512});
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_GT(dataset->tokens(), 100'000);
    EXPECT_LE(dataset->fingerprint().sizeBytes, 32 << 20);
    EXPECT_GT(dataset->validationWindows(), 0);
    RecordProperty("corpus", dataset->description());
}
