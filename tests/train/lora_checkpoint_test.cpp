// SPDX-License-Identifier: Apache-2.0
// Adapters on the weights of a Hugging Face folder: trained, kept in checkpoints, loaded at other world sizes, and
// given away merged or alone.
#include "core/base/file.h"
#include "core/files/checkpoint_reader.h"
#include "core/model/pretrained_weights.h"
#include "core/pretrained/export_checkpoint.h"
#include "core/pretrained/folder_writer.h"
#include "core/shapes/hf_names.h"
#include "tests/model/reference_decoder.h"
#include "tests/train/training_job.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

namespace shardscope::testing {

using test::NamedTensors;
using ::testing::HasSubstr;

namespace {

constexpr int64_t kLoraSteps = 6;
constexpr int64_t kLoraWritten = 3;

/// A job of adapters on a folder of random weights.
class LoraCheckpoint : public ::testing::Test
{
protected:
    void SetUp() override
    {
        at::set_num_threads(1);
        const auto folder = m_job.folder() / "base";
        auto writer = pretrained::FolderWriter::create(folder, TrainingJob::shape(), {});
        ASSERT_TRUE(writer.has_value()) << writer.error().text;
        m_base = test::randomWeights(TrainingJob::shape(), 21);
        for (const auto &[name, value] : m_base)
            ASSERT_TRUE(writer->write(name, 0, bytesOf(value)));
        ASSERT_TRUE(writer->finish());
        auto opened = pretrained::WeightFolder::open(folder);
        ASSERT_TRUE(opened.has_value()) << opened.error().text;
        m_weights.emplace(std::move(*opened));
    }
    static std::span<const std::byte> bytesOf(const at::Tensor &value)
    {
        return {static_cast<const std::byte *>(value.const_data_ptr()), value.nbytes()};
    }

    JobOptions options(int worldSize, Strategy strategy = Strategy::Full) const
    {
        JobOptions options;
        options.worldSize = worldSize;
        options.configuration = TrainingJob::configurationFor(worldSize);
        options.configuration.model.preset.clear();
        options.configuration.model.path = (m_job.folder() / "base").string();
        options.configuration.train.steps = kLoraSteps;
        options.configuration.optimizer.learningRate = 1e-2;
        options.configuration.parallel.strategy = strategy;
        options.configuration.lora.rank = 4;
        options.configuration.lora.alpha = 6;
        options.configuration.lora.targets = {"block.*", "lm_head"};
        options.configuration.checkpoint.every = kLoraWritten;
        options.weights = &*m_weights;
        return options;
    }
    std::filesystem::path checkpointOf(int64_t step) const
    {
        return m_job.checkpoints() / files::CheckpointFolder::nameOf(step);
    }

    TrainingJob m_job;
    NamedTensors m_base;
    std::optional<pretrained::WeightFolder> m_weights;
};

at::Tensor someTokens()
{
    return torch::arange(0, 2 * 24, at::kLong).view({2, 24});
}

/// The logits of a folder's model, which knows of no adapter.
at::Tensor logitsOf(const std::filesystem::path &path)
{
    const auto folder = pretrained::WeightFolder::open(path);
    EXPECT_TRUE(folder.has_value()) << folder.error().text;
    observe::Observer observer;
    auto communicator = engine::Communicator::create({}, observer);
    model::Decoder decoder(folder->shape(), {}, **communicator, observer);
    EXPECT_TRUE(model::loadWeights(decoder.engine(), *folder).has_value());
    return decoder.forwardLogits(someTokens());
}

/// A tensor of a safetensors file.
at::Tensor tensorOf(const files::SafetensorsReader &file, const std::string &name)
{
    const files::SafeTensor *stored = file.find(name);
    if (!stored)
        return {};
    at::Tensor value = at::empty(stored->sizes, at::kFloat);
    EXPECT_TRUE(file.read(*stored, 0, {static_cast<std::byte *>(value.mutable_data_ptr()), value.nbytes()}));
    return value;
}

} // namespace

TEST_F(LoraCheckpoint, mergedOrAloneItIsTheModelThatWasTrained)
{
    JobOptions job = options(2);
    at::Tensor logits;
    NamedTensors last;
    job.stepDone = [&](model::Decoder &decoder, int64_t step) {
        if (step != kLoraSteps)
            return;
        const at::Tensor out = decoder.forwardLogits(someTokens());
        NamedTensors own;
        for (const engine::Bucket &bucket : decoder.engine().buckets()) {
            for (const auto &place : bucket.layout.parameters)
                own[place.shape.name] = decoder.engine().gatherParameter(place.shape.name).value();
        }
        if (decoder.engine().communicator().rank() == 0) {
            logits = out;
            last = std::move(own);
        }
    };
    const JobOutcome outcome = m_job.run(job);
    ASSERT_TRUE(outcome.ends.front()) << outcome.ends.front().error().text;
    for (const auto &[name, value] : m_base)
        EXPECT_TRUE(at::equal(last.at(name), value)) << name;
    EXPECT_GT((logits - logitsOf(m_job.folder() / "base")).abs().max().item<double>(), 1e-2) << "it learnt nothing";

    const auto merged = pretrained::exportCheckpoint(checkpointOf(kLoraSteps), m_job.folder() / "merged", {});
    ASSERT_TRUE(merged.has_value()) << merged.error().text;
    EXPECT_LT((logits - logitsOf(m_job.folder() / "merged")).abs().max().item<double>(), 1e-5);

    const auto alone = pretrained::exportCheckpoint(checkpointOf(kLoraSteps), m_job.folder() / "adapter",
                                                    {.format = pretrained::ExportFormat::Adapter});
    ASSERT_TRUE(alone.has_value()) << alone.error().text;
    const auto file = files::SafetensorsReader::open(m_job.folder() / "adapter/adapter_model.safetensors").value();
    EXPECT_EQ(file.tensors().size(), 2U * (7 * 2 + 1));
    for (const auto &[weight, there] : {std::pair{"block.1.ffn.gate", "model.layers.1.mlp.gate_proj"},
                                        {"block.0.attention.o", "model.layers.0.self_attn.o_proj"},
                                        {"head", "lm_head"}}) {
        for (const auto &[here, part] :
             {std::pair{".lora_a.weight", ".lora_A.weight"}, {".lora_b.weight", ".lora_B.weight"}}) {
            const at::Tensor stored = tensorOf(file, fmt::format("base_model.model.{}{}", there, part));
            ASSERT_TRUE(stored.defined()) << there << part;
            EXPECT_TRUE(at::equal(stored, last.at(std::string(weight) + here))) << there << part;
        }
    }
    const auto config = nlohmann::json::parse(readTextFile(m_job.folder() / "adapter/adapter_config.json").value());
    EXPECT_EQ(config.at("peft_type"), "LORA");
    EXPECT_EQ(config.at("r"), 4);
    EXPECT_EQ(config.at("lora_alpha"), 6);
    EXPECT_EQ(config.at("base_model_name_or_path"), (m_job.folder() / "base").string());
    EXPECT_EQ(config.at("target_modules"),
              nlohmann::json({"down_proj", "gate_proj", "k_proj", "lm_head", "o_proj", "q_proj", "up_proj", "v_proj"}));
}

TEST_F(LoraCheckpoint, goesOnAtAnyWorldSizeAndStrategy)
{
    const JobOutcome whole = m_job.run(options(2));
    ASSERT_TRUE(whole.ends.front()) << whole.ends.front().error().text;
    const std::vector<double> losses = whole.losses();
    const auto checkpoint = m_job.folder() / "written";
    std::filesystem::rename(checkpointOf(kLoraWritten), checkpoint);
    for (const auto &[worldSize, strategy] : {std::pair{1, Strategy::Full},
                                              {2, Strategy::Full},
                                              {2, Strategy::None},
                                              {4, Strategy::GradOp},
                                              {4, Strategy::Hybrid}}) {
        SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
        JobOptions job = options(worldSize, strategy);
        job.resumeFrom = checkpoint;
        const JobOutcome outcome = m_job.run(job);
        ASSERT_TRUE(outcome.ends.front()) << outcome.ends.front().error().text;
        ASSERT_EQ(outcome.losses().size(), static_cast<size_t>(kLoraSteps - kLoraWritten));
        for (size_t i = 0; i < outcome.losses().size(); ++i)
            EXPECT_NEAR(outcome.losses()[i], losses[i + kLoraWritten], 1e-5);
    }
    const auto refusal = [&](auto change) {
        JobOptions job = options(1);
        job.resumeFrom = checkpoint;
        change(job.configuration.lora);
        const auto end = m_job.run(job).ends.front();
        return end ? "" : end.error().text;
    };
    EXPECT_THAT(refusal([](auto &lora) { lora.alpha = 8; }), HasSubstr("its model has lora_alpha = 6, this one 8"));
    EXPECT_THAT(refusal([](auto &lora) { lora.rank = 0; }), HasSubstr("its model has lora_rank = 4, this one 0"));
    EXPECT_THAT(refusal([](auto &lora) { lora.targets = {"q_proj"}; }),
                HasSubstr("block.0.attention.k.lora_a.weight is not in this model"));
}

/// A frozen base is kept in what products use.
TEST_F(LoraCheckpoint, aBf16BaseIsKeptAsIt)
{
    JobOptions job = options(2);
    job.configuration.precision.compute = Precision::Bf16;
    job.configuration.checkpoint.format = CheckpointFormat::Full;
    job.configuration.checkpoint.asynchronous = true;
    const JobOutcome outcome = m_job.run(job);
    ASSERT_TRUE(outcome.ends.front()) << outcome.ends.front().error().text;
    const auto manifest = files::CheckpointFolder::readManifest(checkpointOf(kLoraSteps)).value();
    for (const files::BucketEntry &bucket : manifest.buckets) {
        const bool adapters = bucket.tensors.front().name.find(".lora_") != std::string::npos;
        EXPECT_EQ(bucket.states.size(), adapters ? 3U : 1U) << bucket.name;
        EXPECT_EQ(bucket.states.front().dtype, adapters ? "fp32" : "bf16") << bucket.name;
    }
    const auto merged = pretrained::exportCheckpoint(checkpointOf(kLoraSteps), m_job.folder() / "merged",
                                                     {.type = files::TensorType::F32});
    ASSERT_TRUE(merged.has_value()) << merged.error().text;
    const auto folder = pretrained::WeightFolder::open(m_job.folder() / "merged").value();
    const auto norm = folder.parameter("head.norm.weight");
    at::Tensor value = at::empty({TrainingJob::shape().hidden}, at::kFloat);
    ASSERT_TRUE(folder.read(norm, 0, {static_cast<std::byte *>(value.mutable_data_ptr()), value.nbytes()}));
    EXPECT_TRUE(at::equal(value, m_base.at("head.norm.weight").to(at::kBFloat16).to(at::kFloat)));
}

TEST_F(LoraCheckpoint, aloneIsRefusedWhereItWouldLackSomething)
{
    JobOptions job = options(1);
    const auto refusal = [&] {
        EXPECT_TRUE(m_job.run(job).ends.front());
        const auto alone = pretrained::exportCheckpoint(checkpointOf(kLoraSteps), m_job.folder() / "adapter",
                                                        {.format = pretrained::ExportFormat::Adapter});
        EXPECT_FALSE(std::filesystem::exists(m_job.folder() / "adapter"));
        return alone ? "" : alone.error().text;
    };
    job.configuration.units = {{.kind = ParameterKind::Norm, .frozen = false}};
    EXPECT_THAT(refusal(), HasSubstr("trained block.0.attention_norm.weight beside its adapters"));
    job.configuration.units.clear();
    job.configuration.lora = {};
    EXPECT_THAT(refusal(), HasSubstr("has no adapters"));
}

} // namespace shardscope::testing
