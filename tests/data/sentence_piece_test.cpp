// SPDX-License-Identifier: Apache-2.0
// Texts through SentencePiece, against the library by itself.
#include "core/data/dataset.h"
#include "tests/data/tokenizer_fixture.h"

#include <gmock/gmock.h>
#include <sentencepiece_processor.h>

using namespace shardscope;
using namespace shardscope::data;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// As Llama 2's: nothing of the text is lost.
constexpr const char *kLossless = "--model_type=bpe --vocab_size=400 --byte_fallback=true --character_coverage=0.99 "
                                  "--normalization_rule_name=identity --remove_extra_whitespaces=false";

class SentencePieceTest : public TokenizerFixture
{
protected:
    static std::vector<int64_t> encoded(const fs::path &model, std::string_view text)
    {
        sentencepiece::SentencePieceProcessor processor;
        EXPECT_TRUE(processor.Load(model.string()).ok());
        std::vector<int> ids;
        EXPECT_TRUE(processor.Encode({text.data(), text.size()}, &ids).ok());
        return {ids.begin(), ids.end()};
    }
    static std::string decoded(const fs::path &model, const std::vector<int64_t> &tokens)
    {
        sentencepiece::SentencePieceProcessor processor;
        EXPECT_TRUE(processor.Load(model.string()).ok());
        std::string text;
        EXPECT_TRUE(processor.Decode(std::vector<int>(tokens.begin(), tokens.end()), &text).ok());
        return text;
    }
};

} // namespace

TEST_F(SentencePieceTest, aLongTextHasTheIdsThatItHasAsAWhole)
{
    const fs::path model = sentencePiece("a.model", kLossless);
    const std::string text = longText();
    const std::vector<int64_t> tokens = tokensOf(options(write("a.txt", text), model));
    EXPECT_EQ(tokens, encoded(model, text));
    EXPECT_EQ(decoded(model, tokens), text);
}

TEST_F(SentencePieceTest, otherSettingsOfSpacesAreCutElsewhere)
{
    const std::string text = longText();
    const fs::path path = write("a.txt", text);
    const fs::path noPrefix = sentencePiece("no_prefix.model", std::string(kLossless) + " --add_dummy_prefix=false");
    EXPECT_EQ(tokensOf(options(path, noPrefix)), encoded(noPrefix, text));
    const fs::path unigram = sentencePiece("unigram.model", "--model_type=unigram --vocab_size=300");
    EXPECT_EQ(tokensOf(options(path, unigram)), encoded(unigram, text));
}

TEST_F(SentencePieceTest, aSeparatorStandsBetweenTwoTexts)
{
    const fs::path model = sentencePiece("a.model", kLossless);
    write("texts/1.txt", "some words");
    write("texts/2.txt", "more of them");
    const auto with = [&](int64_t separator) {
        std::vector<int64_t> tokens = encoded(model, "some words");
        tokens.push_back(separator);
        const auto second = encoded(model, "more of them");
        tokens.insert(tokens.end(), second.begin(), second.end());
        return tokens;
    };
    DatasetOptions asked = options(folder / "texts", model);
    EXPECT_EQ(tokensOf(asked), with(2)); // </s>
    asked.separator = "<s>";
    EXPECT_EQ(tokensOf(asked), with(1));
    asked.separator = "37";
    EXPECT_EQ(tokensOf(asked), with(37));
    asked.separator = "none";
    std::vector<int64_t> none = with(0);
    none.erase(none.begin() + std::ssize(encoded(model, "some words")));
    EXPECT_EQ(tokensOf(asked), none);
    asked.separator = "<nothing>";
    EXPECT_THAT(messageOf(asked), HasSubstr("has no token \"<nothing>\", which data.separator names"));
    asked.separator = "400";
    EXPECT_THAT(messageOf(asked), HasSubstr("has no token 400"));
}

TEST_F(SentencePieceTest, aModelWithoutAnEndAsksForASeparator)
{
    const fs::path model = sentencePiece("a.model", std::string(kLossless) + " --eos_id=-1");
    EXPECT_THAT(messageOf(options(write("a.txt", "some words"), model)),
                AllOf(HasSubstr("does not say which token ends a text"), HasSubstr("data.separator = \"none\"")));
}

TEST_F(SentencePieceTest, aFolderWithAModelNamesIt)
{
    const fs::path model = sentencePiece("tokenizer.model", kLossless);
    const fs::path text = write("a.txt", "some words and more");
    EXPECT_EQ(tokensOf(options(text, folder)), encoded(model, "some words and more"));
    DatasetOptions ofModel = options(text, "");
    ofModel.modelFolder = folder;
    EXPECT_EQ(tokensOf(ofModel), encoded(model, "some words and more"));
    ofModel.tokenizer = "bytes";
    EXPECT_EQ(tokensOf(ofModel).front(), 's');
    ofModel.tokenizer = "";
    ofModel.modelFolder = folder / "cache"; // a model without a tokenizer: bytes
    EXPECT_EQ(tokensOf(ofModel).front(), 's');
}

TEST_F(SentencePieceTest, anIdBeyondTheVocabularyNamesTextPositionAndId)
{
    const fs::path model = sentencePiece("a.model", kLossless);
    const std::string words = "some words of the License";
    write("texts/1.txt", "a");
    const fs::path second = write("texts/2.txt", words);
    const std::vector<int64_t> ids = encoded(model, words);
    const auto largest = std::ranges::max_element(ids);
    DatasetOptions asked = options(folder / "texts", model);
    asked.vocabulary = *largest;
    const std::string position = fmt::format("position {} has id {}", largest - ids.begin(), *largest);
    EXPECT_THAT(messageOf(asked), AllOf(HasSubstr(second.string()), HasSubstr(position), HasSubstr("has 400 ids")));
    EXPECT_TRUE(cached().empty());
    asked.vocabulary = 400;
    EXPECT_EQ(messageOf(asked), "opened");
    asked.vocabulary = *largest; // now it is the kept file that holds it
    EXPECT_THAT(messageOf(asked),
                AllOf(HasSubstr((folder / "texts").string()), HasSubstr(fmt::format("has id {}", *largest))));
}

TEST_F(SentencePieceTest, whatIsNoTokenizerIsSaid)
{
    const fs::path text = write("a.txt", "some words");
    EXPECT_THAT(messageOf(options(text, write("bad.model", "this is no model"))),
                HasSubstr("bad.model is no model of SentencePiece"));
    EXPECT_THAT(messageOf(options(text, folder / "none.model")), HasSubstr("There is no"));
    EXPECT_THAT(messageOf(options(text, write("a.vocab", "x"))), HasSubstr("neither in .model"));
    fs::create_directories(folder / "empty");
    EXPECT_THAT(messageOf(options(text, folder / "empty")),
                HasSubstr("has neither tokenizer.json nor tokenizer.model"));
}

TEST_F(SentencePieceTest, bytesThatAreNoTextAreCounted)
{
    const fs::path model = sentencePiece("a.model", kLossless);
    const DatasetOptions asked = options(write("a.txt", "caf\xE9 and \xFF\xFE words"), model);
    const auto dataset = Dataset::open(asked);
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_THAT(dataset->description(), HasSubstr("3 bytes that are no UTF-8 became U+FFFD"));
    EXPECT_EQ(decoded(model, tokensOf(asked)), "caf\uFFFD and \uFFFD\uFFFD words");
}

TEST_F(SentencePieceTest, aDescriptionTokenisesNothing)
{
    const fs::path model = sentencePiece("a.model", kLossless);
    const DatasetOptions asked = options(write("a.txt", longText()), model);
    const auto before = describeData(asked);
    ASSERT_TRUE(before) << before.error().text;
    EXPECT_THAT(*before, AllOf(HasSubstr("KiB of text, tokenised by " + model.string())));
    EXPECT_TRUE(cached().empty());
    const auto dataset = Dataset::open(asked);
    ASSERT_TRUE(dataset) << dataset.error().text;
    EXPECT_EQ(describeData(asked).value(), dataset->description());
    EXPECT_THAT(dataset->description(), HasSubstr("tokens (by " + model.string() + ")"));
    EXPECT_THAT(describeData(options(folder / "a.txt", write("bad.model", "x"))).error().text,
                HasSubstr("is no model"));
}
