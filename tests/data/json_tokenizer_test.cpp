// SPDX-License-Identifier: Apache-2.0
// Texts through a tokenizer.json, against the tokenizers package by itself.
#include "core/data/dataset.h"
#include "core/data/json_tokenizer.h"
#include "tests/data/tokenizer_fixture.h"

#include <cstdlib>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::data;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// Trains one kind on a text and writes it: KIND TEXT OUT.
constexpr const char *kTrain = R"(
import sys
from tokenizers import Tokenizer, AddedToken, models, pre_tokenizers, trainers, normalizers, decoders
kind, text, out = sys.argv[1:]
special = ["<unk>", "<s>", "</s>", "<|endoftext|>"]
tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=kind == "llama"))
alphabet = []
if kind == "gpt2":
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
elif kind == "llama3":
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    from tokenizers import Regex
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
else:
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special += ["<0x%02X>" % byte for byte in range(256)]
tokenizer.train([text], trainers.BpeTrainer(vocab_size=700, special_tokens=special, initial_alphabet=alphabet, show_progress=False))
tokenizer.save(out)
print(tokenizer.get_vocab_size(), tokenizer.token_to_id("</s>"), tokenizer.token_to_id("<|endoftext|>"))
)";

/// The ids of a whole text: TOKENIZER TEXT.
constexpr const char *kEncode = R"(
import sys
from tokenizers import Tokenizer
text = open(sys.argv[2], "rb").read().decode("utf-8", "replace")
print(*Tokenizer.from_file(sys.argv[1]).encode(text, add_special_tokens=False).ids)
)";

class JsonTokenizerTest : public TokenizerFixture
{
protected:
    void SetUp() override
    {
        TokenizerFixture::SetUp();
        if (pythonWithTokenizers().empty())
            GTEST_SKIP() << "no Python here has the tokenizers package";
        text = write("a.txt", longText());
    }
    fs::path train(const std::string &kind, const fs::path &name)
    {
        fs::create_directories((folder / name).parent_path());
        facts = numbersOfPython(kTrain, {kind, text.string(), (folder / name).string()});
        return folder / name;
    }
    static std::vector<int64_t> encoded(const fs::path &tokenizer, const fs::path &text)
    {
        return numbersOfPython(kEncode, {tokenizer.string(), text.string()});
    }
    fs::path text;
    std::vector<int64_t> facts; ///< of the last train(): vocabulary, id of </s>, id of <|endoftext|>
};

} // namespace

TEST_F(JsonTokenizerTest, aLongTextHasTheIdsThatItHasAsAWhole)
{
    for (const char *kind : {"gpt2", "llama3", "llama"}) {
        SCOPED_TRACE(kind);
        const fs::path tokenizer = train(kind, std::string(kind) + "/tokenizer.json");
        const std::vector<int64_t> tokens = tokensOf(options(text, tokenizer));
        EXPECT_GT(tokens.size(), 10'000);
        EXPECT_EQ(tokens, encoded(tokenizer, text));
    }
}

TEST_F(JsonTokenizerTest, theEndOfATextIsWhatTheFolderSays)
{
    const fs::path tokenizer = train("gpt2", "model/tokenizer.json");
    ASSERT_EQ(facts.size(), 3);
    const fs::path texts = write("texts/1.txt", "some words").parent_path();
    write("texts/2.txt", "more words");
    const size_t length = encoded(tokenizer, texts / "1.txt").size();
    const auto separator = [&](const char *asked) {
        DatasetOptions own = options(texts, tokenizer);
        own.separator = asked;
        return tokensOf(own).at(length);
    };
    EXPECT_EQ(separator("auto"), facts[2]); // the usual names, <|endoftext|> first
    write("model/config.json", R"({"eos_token_id": [7, 8]})");
    EXPECT_EQ(separator("auto"), 7);
    write("model/tokenizer_config.json", R"({"eos_token": {"content": "</s>"}})");
    EXPECT_EQ(separator("auto"), facts[1]);
    EXPECT_EQ(separator("<s>"), facts[1] - 1);
    EXPECT_EQ(separator("9"), 9);
    DatasetOptions own = options(texts, tokenizer);
    own.separator = "<none of them>";
    EXPECT_THAT(messageOf(own), HasSubstr("has no token \"<none of them>\""));
    write("model/tokenizer_config.json", R"({"eos_token": "<missing>"})");
    EXPECT_THAT(messageOf(options(texts, tokenizer)), HasSubstr("Name it"));
}

TEST_F(JsonTokenizerTest, aModelsFolderBringsItsOwn)
{
    const fs::path tokenizer = train("gpt2", "model/tokenizer.json");
    DatasetOptions own = options(text, "");
    own.modelFolder = folder / "model";
    EXPECT_EQ(tokensOf(own), encoded(tokenizer, text));
}

TEST_F(JsonTokenizerTest, withKeptTokensPythonIsNotNeeded)
{
    const DatasetOptions own = options(text, train("gpt2", "model/tokenizer.json"));
    const std::vector<int64_t> tokens = tokensOf(own);
    const std::string path = std::getenv("PATH");
    ::setenv("SHARDSCOPE_PYTHON", "/nowhere/python", 1);
    ::setenv("PATH", "/nowhere", 1);
    const std::vector<int64_t> again = tokensOf(own);
    ::setenv("PATH", path.c_str(), 1);
    ::unsetenv("SHARDSCOPE_PYTHON");
    EXPECT_EQ(again, tokens);
}

TEST_F(JsonTokenizerTest, whatIsNoTokenizerIsSaid)
{
    EXPECT_THAT(messageOf(options(text, write("tokenizer.json", "{\"model\": 1}"))),
                HasSubstr("is no tokenizer.json that the tokenizers package reads"));
    EXPECT_TRUE(cached().empty());
}

TEST_F(JsonTokenizerTest, aProcessThatDiesIsSaidWithItsLastWords)
{
    // A Python whose tokenizers package ends the process in the middle of its work.
    train("gpt2", "model/tokenizer.json");
    write("bin/tokenizers.py",
          "import sys\nclass Tokenizer:\n @staticmethod\n def from_file(name): return Tokenizer()\n"
          " def no_truncation(self): pass\n def no_padding(self): pass\n"
          " def get_vocab(self, with_added_tokens): return {'a': 299}\n"
          " def token_to_id(self, token): return 1\n"
          " def encode_batch(self, texts, add_special_tokens): sys.exit('out of luck')\n");
    const fs::path python = write("bin/python", fmt::format("#!/bin/sh\nPYTHONPATH='{}' exec '{}' \"$@\"\n",
                                                            (folder / "bin").string(), pythonWithTokenizers()));
    fs::permissions(python, fs::perms::owner_all);
    ::setenv("SHARDSCOPE_PYTHON", python.c_str(), 1);
    const std::string message = messageOf(options(text, folder / "model"));
    ::unsetenv("SHARDSCOPE_PYTHON");
    EXPECT_THAT(message, AllOf(HasSubstr("ended unexpectedly"), HasSubstr("out of luck")));
    EXPECT_TRUE(cached().empty());
}

TEST_F(JsonTokenizerTest, cancellingEndsAProcessThatHangs)
{
    train("gpt2", "model/tokenizer.json");
    const fs::path python = write("bin/python", "#!/bin/sh\nexec sleep 600\n");
    fs::permissions(python, fs::perms::owner_all);
    ::setenv("SHARDSCOPE_PYTHON", python.c_str(), 1);
    DatasetOptions own = options(text, folder / "model");
    own.progress = [](const DataProgress &progress) { return progress.phase != DataPhase::Tokenising; };
    const std::string message = messageOf(own);
    ::unsetenv("SHARDSCOPE_PYTHON");
    EXPECT_EQ(message, kCancelled);
    EXPECT_TRUE(cached().empty());
}

TEST_F(TokenizerFixture, withoutThePackageItIsSaidHowToInstallIt)
{
    const auto lacking = [&](const char *name) {
        const fs::path python = write(name, "#!/bin/sh\necho '{\"missing\": \"No module named tokenizers\"}'\n");
        fs::permissions(python, fs::perms::owner_all);
        return python.string();
    };
    const auto choice = chooseTokenizer(write("tokenizer.json", "{}").string(), "auto", {});
    ASSERT_TRUE(choice) << choice.error().text;
    const std::string one = lacking("one");
    const std::string two = lacking("two");
    EXPECT_THAT(openJsonTokenizer(*choice, {one, "/nowhere/python"}, {}).error().text,
                AllOf(HasSubstr("none of " + one + ", /nowhere/python has it"),
                      HasSubstr(one + " -m pip install tokenizers==")));
    EXPECT_THAT(openJsonTokenizer(*choice, {two}, {}).error().text, HasSubstr(two + " lacks it"));
}
