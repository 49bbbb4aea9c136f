// SPDX-License-Identifier: Apache-2.0
// A Hugging Face folder through the command line and the real worker: trained, checkpointed and exported again.
#include "core/pretrained/folder_writer.h"
#include "core/pretrained/weight_folder.h"
#include "tests/cli/with_worker.h"
#include "tests/support/transformers_peer.h"

#include <cmath>
#include <gmock/gmock.h>

namespace fs = std::filesystem;
using namespace shardscope;
using testing::HasSubstr;

/// Qwen3 with everything that it can have.
static constexpr const char *kConfig = R"({
    "model_type": "qwen3", "vocab_size": 256, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128,
    "attention_bias": true, "tie_word_embeddings": true, "use_sliding_window": true, "sliding_window": 5,
    "max_window_layers": 1, "rope_theta": 10000.0})";

class ModelFolder : public test::WithWorker
{
protected:
    void SetUp() override
    {
        WithWorker::SetUp();
        std::ofstream numbers(tokens(), std::ios::binary);
        for (int i = 0; i < 8000; ++i) {
            const auto token = static_cast<uint16_t>(i * 31 % 97); // of the vocabulary of the peer's models
            numbers.write(reinterpret_cast<const char *>(&token), sizeof token);
        }
    }
    fs::path tokens() const { return cli.folder() / "tokens.bin"; }
    fs::path model() const { return cli.folder() / "a model"; }
    /// Weights that differ everywhere.
    void writeModel()
    {
        const auto shape = shapes::parseHfConfig(kConfig, "config.json")->shape;
        auto writer = pretrained::FolderWriter::create(model(), shape, {.shardBytes = 30'000});
        ASSERT_TRUE(writer.has_value()) << writer.error().text;
        int64_t number = 0;
        for (const auto &unit : shapes::unitsOf(shape)) {
            for (const auto &parameter : unit.parameters) {
                std::vector<float> values(static_cast<size_t>(parameter.elements()));
                for (float &value : values)
                    value = static_cast<float>(std::sin(static_cast<double>(++number))) * 0.05F +
                            (parameter.kind == ParameterKind::Norm ? 1.0F : 0.0F);
                ASSERT_TRUE(writer->write(parameter.name, 0, std::as_bytes(std::span(values))));
            }
        }
        ASSERT_TRUE(writer->finish());
        std::ofstream(model() / "tokenizer_config.json") << "{}";
    }
    test::Finished train(const std::string &name, const fs::path &model, std::vector<std::string> more = {})
    {
        std::vector<std::string> all = {"run", "--model", model.string(), "--device", "cpu", "--steps", "2"};
        for (const char *assignment : {"train.sequence_length=32", "train.micro_batch=1", "checkpoint.every=2"})
            all.insert(all.end(), {"--set", assignment});
        all.insert(all.end(), {"--set", "run.name=" + name});
        all.insert(all.end(), more.begin(), more.end());
        return cli.run(all);
    }
};

/// Updates far below what fp32 resolves: what comes out is what went in.
static const std::vector<std::string> kStandStill = {"--set", "optimizer.learning_rate=1e-30", "--set",
                                                     "optimizer.weight_decay=0"};

TEST_F(ModelFolder, isTrainedAndExported)
{
    writeModel();
    std::vector<std::string> options = kStandStill;
    options.insert(options.end(), {"--ranks", "2", "--data", data().string()});
    const test::Finished finished = train("a", model(), options);
    ASSERT_EQ(finished.exitCode, 0) << finished.errors;
    const fs::path out = cli.folder() / "exported";
    const test::Finished exported = cli.run({"export", "a", "--out", out.string()});
    ASSERT_EQ(exported.exitCode, 0) << exported.errors;
    EXPECT_EQ(exported.out, out.string() + "\n");
    const auto before = pretrained::WeightFolder::open(model());
    const auto after = pretrained::WeightFolder::open(out);
    ASSERT_TRUE(before.has_value() && after.has_value()) << after.error().text;
    for (const auto &unit : shapes::unitsOf(before->shape())) {
        for (const auto &parameter : unit.parameters) {
            std::vector<std::byte> left(static_cast<size_t>(parameter.elements() * 4));
            std::vector<std::byte> right(left.size());
            ASSERT_TRUE(before->read(before->parameter(parameter.name), 0, left));
            ASSERT_TRUE(after->read(after->parameter(parameter.name), 0, right));
            EXPECT_EQ(left, right) << parameter.name;
        }
    }
    EXPECT_TRUE(fs::exists(out / "tokenizer_config.json"));
}

TEST_F(ModelFolder, exportRefusesWhatItCanNotDo)
{
    fs::create_directory(model());
    std::ofstream(model() / "config.json") << kConfig;
    const auto expectRefused = [&](std::vector<std::string> options, const char *message) {
        std::vector<std::string> all = {"export", "b"};
        all.insert(all.end(), options.begin(), options.end());
        const test::Finished refused = cli.run(all);
        EXPECT_EQ(refused.exitCode, 2);
        EXPECT_THAT(refused.errors, HasSubstr(message));
    };
    const std::string out = (cli.folder() / "out").string();
    expectRefused({"--out", out}, "There is no run named b");
    // The model is trained from scratch where its folder has a config.json alone.
    const test::Finished finished = train(
        "b", model(), {"--data", data().string(), "--set", "checkpoint.every=0", "--set", "checkpoint.at_end=false"});
    ASSERT_EQ(finished.exitCode, 0) << finished.errors;
    expectRefused({"--out", out}, "has no whole checkpoint");
    ASSERT_EQ(train("c", model(), {"--data", data().string()}).exitCode, 0);
    fs::rename(cli.runFolder("c").checkpointsFolder(), cli.runFolder("b").checkpointsFolder());
    expectRefused({"--out", out, "--step", "7"}, "There are: 2.");
    expectRefused({"--out", cli.folder().string()}, "exists already");
    expectRefused({"--out", out, "--format", "onnx"}, "onnx");
    expectRefused({"--out", out, "--dtype", "float8"}, "float8");
    expectRefused({"--out", out, "--format", "adapter"}, "has no adapters");
    expectRefused({}, "--out is required");
    EXPECT_FALSE(fs::exists(out));
}

TEST_F(ModelFolder, opensInTransformersAndItsAdaptersInPeft)
{
    if (!test::TransformersPeer::isInstalled())
        GTEST_SKIP() << test::TransformersPeer::kMissing;
    const fs::path folder = cli.folder() / "models";
    fs::create_directory(folder);
    const test::TransformersPeer peer(folder);
    const std::vector<std::string> cases = {"llama_llama3", "qwen2", "qwen3_everything"};
    ASSERT_EQ(peer.run("make", cases), cases);
    const auto trainAndExport = [&](const std::string &name, std::vector<std::string> options) {
        options.insert(options.end(), {"--data", tokens().string()});
        const test::Finished finished = train(name, folder / name / "model", options);
        ASSERT_EQ(finished.exitCode, 0) << finished.errors;
        const test::Finished exported = cli.run({"export", name, "--out", (folder / name / "export").string()});
        ASSERT_EQ(exported.exitCode, 0) << exported.errors;
    };
    std::vector<std::string> full = kStandStill;
    full.insert(full.end(), {"--ranks", "1", "--set", "checkpoint.format=full"});
    trainAndExport("llama_llama3", full);
    std::vector<std::string> sharded = kStandStill;
    sharded.insert(sharded.end(), {"--ranks", "3"});
    trainAndExport("qwen3_everything", sharded);
    trainAndExport("qwen2", {"--ranks", "2", "--set", "lora.rank=4", "--set", "lora.alpha=10", "--set",
                             "lora.targets=q_proj,model.layers.1.mlp.*", "--set", "optimizer.learning_rate=0.1",
                             "--set", "optimizer.warmup_steps=0"});
    const test::Finished alone =
        cli.run({"export", "qwen2", "--format", "adapter", "--out", (folder / "qwen2/adapter").string()});
    ASSERT_EQ(alone.exitCode, 0) << alone.errors;
    peer.expectSameLogits("check", cases);
}

TEST_F(ModelFolder, targetsWithoutAWeightAreRefused)
{
    writeModel();
    const test::Finished refused =
        train("b", model(), {"--data", data().string(), "--set", "lora.rank=4", "--set", "lora.targets=atention.q"});
    EXPECT_EQ(refused.exitCode, 2);
    EXPECT_THAT(refused.errors, HasSubstr("Did you mean attention.q?"));
    EXPECT_FALSE(fs::exists(cli.runFolder("b").root()));
}
