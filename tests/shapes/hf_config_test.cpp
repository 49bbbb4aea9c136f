// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/hf_config.h"
#include "core/shapes/hf_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::shapes;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

json small(const char *type)
{
    return {{"model_type", type},       {"vocab_size", 100},
            {"hidden_size", 48},        {"intermediate_size", 96},
            {"num_hidden_layers", 3},   {"num_attention_heads", 4},
            {"num_key_value_heads", 2}, {"max_position_embeddings", 128}};
}

json with(json config, const json &more)
{
    config.update(more);
    return config;
}

HfConfig read(const json &config)
{
    auto result = parseHfConfig(config.dump(), "config.json");
    EXPECT_TRUE(result.has_value()) << result.error().text;
    return result ? *result : HfConfig{};
}

std::string problemsOf(const json &config)
{
    const auto result = parseHfConfig(config.dump(), "config.json");
    return result ? "" : result.error().text;
}

} // namespace

TEST(HfConfig, readsWhatTheFamiliesDifferIn)
{
    const ModelShape llama = read(small("llama")).shape;
    EXPECT_EQ(llama.headSize, 12);
    EXPECT_EQ(llama.keyValueHeads, 2);
    EXPECT_EQ(llama.maxSequence, 128);
    EXPECT_EQ(llama.normEps, 1e-6);
    EXPECT_EQ(llama.ropeTheta, 10000);
    EXPECT_FALSE(llama.queryKeyValueBias || llama.outputBias || llama.feedForwardBias || llama.queryKeyNorm);
    EXPECT_TRUE(llama.windows.empty());
    const ModelShape biased = read(with(small("llama"), {{"attention_bias", true}, {"mlp_bias", true}})).shape;
    EXPECT_TRUE(biased.queryKeyValueBias && biased.outputBias && biased.feedForwardBias);
    const ModelShape qwen2 = read(small("qwen2")).shape;
    EXPECT_TRUE(qwen2.queryKeyValueBias);
    EXPECT_FALSE(qwen2.outputBias || qwen2.queryKeyNorm);
    const ModelShape qwen3 = read(small("qwen3")).shape;
    EXPECT_TRUE(qwen3.queryKeyNorm);
    EXPECT_EQ(qwen3.headSize, 128); // the class's own default, whatever hidden ÷ heads is
    EXPECT_EQ(read(with(small("llama"), {{"head_dim", 20}})).shape.headSize, 20);
}

TEST(HfConfig, readsSlidingWindowsAsTheClassesDo)
{
    EXPECT_THAT(read(with(small("mistral"), {{"sliding_window", 16}})).shape.windows, ElementsAre(16, 16, 16));
    EXPECT_TRUE(read(with(small("mistral"), {{"sliding_window", nullptr}})).shape.windows.empty());
    EXPECT_THAT(read(small("mistral")).shape.windows, ElementsAre(4096, 4096, 4096));
    const json window = {{"sliding_window", 16}, {"max_window_layers", 2}};
    EXPECT_TRUE(read(with(small("qwen2"), window)).shape.windows.empty());
    EXPECT_THAT(read(with(with(small("qwen2"), window), {{"use_sliding_window", true}})).shape.windows,
                ElementsAre(0, 0, 16));
    const json types = {{"use_sliding_window", true},
                        {"sliding_window", 16},
                        {"layer_types", {"sliding_attention", "full_attention", "full_attention"}}};
    EXPECT_THAT(read(with(small("qwen3"), types)).shape.windows, ElementsAre(16, 0, 0));
    EXPECT_THAT(problemsOf(with(with(small("qwen3"), types), {{"use_sliding_window", false}})),
                HasSubstr("turn it off"));
    EXPECT_THAT(problemsOf(with(small("qwen3"), {{"layer_types", {"chunked_attention", "", ""}}})),
                HasSubstr("\"chunked_attention\", which is not supported"));
}

TEST(HfConfig, readsOldAndNewFieldsOfRope)
{
    const ModelShape old =
        read(with(small("llama"), {{"rope_theta", 5e5}, {"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}}))
            .shape;
    EXPECT_EQ(old.ropeTheta, 5e5);
    EXPECT_EQ(old.ropeScaling.kind, RopeScaling::Kind::Linear);
    EXPECT_EQ(old.ropeScaling.factor, 4);
    EXPECT_EQ(old.maxSequence, 512);
    EXPECT_EQ(old.trainedSequence(), 128);
    const json llama3 = {{"rope_type", "llama3"},  {"rope_theta", 1e6},       {"factor", 8},
                         {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 32}};
    const ModelShape fresh = read(with(small("llama"), {{"rope_parameters", llama3}})).shape;
    EXPECT_EQ(fresh.ropeTheta, 1e6);
    EXPECT_EQ(fresh.ropeScaling.originalMaxSequence, 32);
    EXPECT_EQ(fresh.maxSequence, 128);
    const json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
    const ModelShape stretched = read(with(small("qwen3"), {{"rope_scaling", yarn}, {"rope_theta", 1e6}})).shape;
    EXPECT_EQ(stretched.ropeTheta, 1e6);
    EXPECT_NEAR(stretched.ropeScaling.attentionFactor, 0.1 * std::log(4.0) + 1, 1e-12);
    EXPECT_EQ(stretched.maxSequence, 256);
    EXPECT_EQ(read(with(small("llama"), {{"rope_scaling", nullptr}})).shape.ropeScaling, RopeScaling());
}

TEST(HfConfig, refusesByNameWhatItCantBe)
{
    EXPECT_THAT(problemsOf(with(small("llama"), {{"rope_scaling", {{"type", "longrope"}}}})),
                HasSubstr("RoPE of the kind \"longrope\" (rope_scaling) is not supported"));
    EXPECT_THAT(problemsOf(with(small("llama"), {{"rope_parameters", {{"rope_type", "linear"}}}})),
                HasSubstr("rope_parameters.factor is missing"));
    EXPECT_THAT(problemsOf(with(small("llama"), {{"partial_rotary_factor", 0.5}})),
                HasSubstr("partial_rotary_factor = 0.5 is not supported"));
    EXPECT_THAT(problemsOf(with(small("llama"), {{"hidden_act", "gelu"}})), HasSubstr("hidden_act = \"gelu\""));
    EXPECT_THAT(problemsOf(with(small("llama"), {{"quantization_config", {{"bits", 4}}}})),
                HasSubstr("quantized weights can't be trained"));
    EXPECT_THAT(problemsOf(with(small("llama"), {{"architectures", {"LlamaForSequenceClassification"}}})),
                HasSubstr("must hold a LlamaForCausalLM"));
    EXPECT_EQ(problemsOf(small("gpt2")),
              "config.json can't be used:\n  Models of the type \"gpt2\" are not supported. Supported: llama, mistral, "
              "qwen2, qwen3.");
    EXPECT_EQ(parseHfConfig("[1, 2", "a/config.json").error().text, "a/config.json is no JSON object.");
}

TEST(HfConfig, listsAllProblemsAtOnce)
{
    json config = small("llama");
    config.erase("vocab_size");
    config["hidden_size"] = -3;
    config["num_hidden_layers"] = 1.5;
    config["num_key_value_heads"] = 3;
    config["rms_norm_eps"] = "small";
    config["head_dim"] = 7;
    EXPECT_EQ(problemsOf(config), "config.json can't be used:\n"
                                  "  vocab_size is missing.\n"
                                  "  hidden_size = -3 must be a whole number from 1 to 1048576.\n"
                                  "  num_hidden_layers = 1.5 must be a whole number from 1 to 16384.\n"
                                  "  rms_norm_eps = \"small\" must be a number.\n"
                                  "  num_attention_heads = 4 must be a multiple of num_key_value_heads = 3.\n"
                                  "  A head of 7 elements is odd, and RoPE rotates pairs.");
    EXPECT_THAT(problemsOf(with(small("llama"), {{"vocab_size", 1e30}})), HasSubstr("vocab_size = 1e+30 must be"));
    EXPECT_THAT(problemsOf(with(small("llama"), {{"vocab_size", 18446744073709551615U}})),
                HasSubstr("must be a whole"));
}

TEST(HfConfig, warnsOfWhatHasNoEffect)
{
    const HfConfig config = read(
        with(small("llama"), {{"attention_dropout", 0.1}, {"rope_scaling", {{"rope_type", "default"}, {"alpha", 3}}}}));
    EXPECT_THAT(config.warnings, ElementsAre("rope_scaling.alpha is not known here and has no effect.",
                                             "attention_dropout is not applied: nothing drops out here."));
}

TEST(HfConfig, comesBackFromItsOwnText)
{
    const json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
    for (const json &config :
         {with(small("llama"), {{"attention_bias", true}, {"mlp_bias", true}, {"tie_word_embeddings", true}}),
          with(small("mistral"), {{"sliding_window", 16}}), with(small("mistral"), {{"sliding_window", nullptr}}),
          with(small("qwen2"), {{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 1}}),
          with(small("qwen3"), {{"rope_scaling", yarn}, {"rope_theta", 3e6}, {"head_dim", 64}})}) {
        const ModelShape shape = read(config).shape;
        const auto text = hfConfigText(shape, "bfloat16", config.dump());
        ASSERT_TRUE(text.has_value());
        const ModelShape again = read(json::parse(*text)).shape;
        EXPECT_EQ(hfConfigText(again, "bfloat16", config.dump()).value(), *text);
        EXPECT_EQ(parameterCount(again), parameterCount(shape));
        EXPECT_EQ(again.windows, shape.windows);
        EXPECT_EQ(again.ropeScaling, shape.ropeScaling);
        EXPECT_EQ(again.ropeTheta, shape.ropeTheta);
        EXPECT_EQ(again.maxSequence, shape.maxSequence);
        EXPECT_EQ(again.tiedEmbeddings, shape.tiedEmbeddings);
    }
    const auto kept = hfConfigText(read(small("llama")).shape, "float32", R"({"eos_token_id": 7, "torch_dtype": "x"})");
    EXPECT_EQ(json::parse(*kept)["eos_token_id"], 7);
    EXPECT_FALSE(json::parse(*kept).contains("torch_dtype"));
}

TEST(HfNames, mapBothWaysForEveryParameter)
{
    ModelShape shape = read(with(small("llama"), {{"attention_bias", true}, {"mlp_bias", true}})).shape;
    shape.queryKeyNorm = true;
    std::set<std::string> names;
    for (const UnitShape &unit : unitsOf(shape)) {
        for (const ParameterShape &parameter : unit.parameters) {
            const std::string there = hfNameOf(parameter.name);
            EXPECT_EQ(nameOfHf(there), parameter.name);
            names.insert(there);
        }
    }
    EXPECT_EQ(names.size(), 3U + 3 * 18);
    EXPECT_TRUE(names.contains("model.layers.2.self_attn.q_proj.weight"));
    for (const char *foreign : {"model.layers.x.self_attn.q_proj.weight", "model.layers..mlp.up_proj.weight",
                                "lm_head.bias", "model.layers.1.self_attn.rotary_emb.inv_freq", "model.layers.1", ""})
        EXPECT_FALSE(nameOfHf(foreign).has_value()) << foreign;
}
