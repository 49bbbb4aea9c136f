// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/weight_folder.h"

#include "tests/pretrained/example_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::pretrained;
using shardscope::testing::ExampleFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

static constexpr const char *kHead = "lm_head.weight";
static constexpr const char *kEmbedding = "model.embed_tokens.weight";

static std::string problemsOf(const ExampleFolder &example, bool tie = false)
{
    const auto opened = WeightFolder::open(example.folder.path(), tie);
    return opened ? "" : opened.error().text;
}

static void expectValues(const WeightFolder &folder, const char *name, float first)
{
    const StoredParameter &parameter = folder.parameter(name);
    std::vector<float> values(2);
    ASSERT_TRUE(folder.read(parameter, 4, std::as_writable_bytes(std::span(values))).has_value());
    EXPECT_EQ(values, (std::vector<float>{first + 1, first + 2}));
}

TEST(WeightFolder, readsOneFileAndShards)
{
    for (const size_t shards : {1, 3}) {
        ExampleFolder example;
        example.write(shards);
        const auto folder = WeightFolder::open(example.folder.path());
        ASSERT_TRUE(folder.has_value()) << folder.error().text;
        EXPECT_TRUE(folder->hasWeights());
        EXPECT_THAT(folder->warnings(), IsEmpty());
        expectValues(*folder, "embedding.weight", example.tensors[kEmbedding].first);
        expectValues(*folder, "block.1.ffn.down.weight", example.tensors["model.layers.1.mlp.down_proj.weight"].first);
    }
}

TEST(WeightFolder, isFreshWithAConfigAlone)
{
    ExampleFolder example;
    example.text("config.json", example.config);
    const auto folder = WeightFolder::open(example.folder.path());
    ASSERT_TRUE(folder.has_value()) << folder.error().text;
    EXPECT_FALSE(folder->hasWeights());
    EXPECT_EQ(folder->shape().hidden, 8);
}

TEST(WeightFolder, listsEveryTensorThatDoesNotFit)
{
    ExampleFolder example;
    example.tensors.erase("model.norm.weight");
    example.tensors["model.layers.0.self_attn.q_proj.weight"].sizes = {4, 8};
    example.tensors["model.layers.1.mlp.up_proj.weight"].type = files::TensorType::I8;
    example.write();
    EXPECT_EQ(problemsOf(example), example.folder.path().string() +
                                       " can't be loaded:\n"
                                       "  model.layers.0.self_attn.q_proj.weight has the shape [4, 8], but by "
                                       "config.json it must be [8, 8].\n"
                                       "  model.layers.1.mlp.up_proj.weight has the dtype I8; it must be F32, BF16, "
                                       "F16 or F64.\n"
                                       "  model.norm.weight is missing.");
}

TEST(WeightFolder, namesTensorsThatTheModelDoesNotUse)
{
    ExampleFolder example;
    example.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{2}};
    example.tensors["model.layers.2.mlp.up_proj.weight"] = {{12, 8}};
    example.write(2);
    const auto folder = WeightFolder::open(example.folder.path());
    ASSERT_TRUE(folder.has_value()) << folder.error().text;
    EXPECT_THAT(folder->warnings(),
                ElementsAre("Tensors of the folder are not used by the model: "
                            "model.layers.0.self_attn.rotary_emb.inv_freq, model.layers.2.mlp.up_proj.weight."));
}

TEST(WeightFolder, settlesTheTieByFlagAndStore)
{
    const auto open = [](const char *flag, bool stored, bool equal, bool tie = false) {
        ExampleFolder example;
        const std::string stated = flag ? fmt::format(R"("tie_word_embeddings": {})", flag) : R"("use_cache": true)";
        example.config.replace(example.config.find(R"("tie_word_embeddings": false)"), 28, stated);
        if (!stored)
            example.tensors.erase(kHead);
        else if (equal)
            example.tensors[kHead] = example.tensors[kEmbedding];
        example.write();
        const auto folder = WeightFolder::open(example.folder.path(), tie);
        if (!folder)
            return folder.error().text;
        return std::string(folder->shape().tiedEmbeddings ? "tied" : "untied") +
               (folder->warnings().empty() ? "" : ", warns");
    };
    EXPECT_EQ(open("true", false, false), "tied");
    EXPECT_EQ(open("true", true, true), "tied");
    EXPECT_THAT(open("true", true, false), HasSubstr("lm_head.weight is stored and differs from "
                                                     "model.embed_tokens.weight, but tie_word_embeddings says"));
    EXPECT_EQ(open("false", true, false), "untied");
    EXPECT_THAT(open("false", false, false), HasSubstr("lm_head.weight is missing, and tie_word_embeddings is false"));
    EXPECT_EQ(open(nullptr, true, false), "untied");
    EXPECT_EQ(open(nullptr, false, false), "tied, warns");
    EXPECT_EQ(open("false", false, false, true), "tied");
    EXPECT_THAT(open("false", true, false, true), HasSubstr("but model.tie_embeddings says"));
}

TEST(WeightFolder, refusesMissingTruncatedAndForeignShards)
{
    ExampleFolder example;
    example.write(3);
    const auto shard = [&](size_t i) { return example.folder.path() / ExampleFolder::fileName(i, 3); };
    const auto bytes = std::filesystem::file_size(shard(1));
    std::filesystem::resize_file(shard(1), bytes - 8);
    std::filesystem::remove(shard(2));
    EXPECT_THAT(
        problemsOf(example),
        AllOf(HasSubstr("model-00003-of-00003.safetensors is missing, and model.safetensors.index.json names it"),
              HasSubstr("model-00002-of-00003.safetensors"), HasSubstr("can't be loaded:")));
    example.write(3);
    std::filesystem::copy_file(shard(0), shard(1), std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(problemsOf(example), HasSubstr("model-00002-of-00003.safetensors has no tensor "));
}

TEST(WeightFolder, refusesAnIndexThatCantBeBelieved)
{
    ExampleFolder example;
    example.write(2);
    const auto index = [&](const std::string &text) {
        example.text("model.safetensors.index.json", text);
        return problemsOf(example);
    };
    EXPECT_THAT(index("{"), HasSubstr("has no weight_map"));
    EXPECT_THAT(index(R"({"weight_map": {"a": "../../etc/passwd"}})"),
                HasSubstr("which is no file name in the folder"));
    EXPECT_THAT(index(R"({"weight_map": {"a": 3}})"), HasSubstr("which is no file name in the folder"));
    EXPECT_THAT(index(R"({"weight_map": {"a": "x", "a": "y"}})"), HasSubstr("names a tensor twice: a."));
    std::filesystem::remove(example.folder.path() / "model.safetensors.index.json");
    EXPECT_THAT(problemsOf(example), HasSubstr("but neither model.safetensors nor model.safetensors.index.json"));
}

TEST(WeightFolder, refusesFoldersThatAreNone)
{
    ExampleFolder example;
    EXPECT_THAT(problemsOf(example), HasSubstr("has no config.json"));
    EXPECT_THAT(WeightFolder::open("/no/such").error().text, HasSubstr("There is no folder /no/such"));
    example.text("config.json", example.config);
    example.text("pytorch_model.bin", "x");
    EXPECT_THAT(problemsOf(example), HasSubstr("PyTorch's own format (pytorch_model.bin)"));
    example.text("model.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f{}");
    EXPECT_THAT(problemsOf(example), HasSubstr("model.safetensors is no whole safetensors file"));
}
