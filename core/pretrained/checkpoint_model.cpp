// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/checkpoint_model.h"

#include "core/config/configuration_file.h"
#include "core/shapes/adapters.h"
#include "core/shapes/hf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardscope::pretrained {

files::ShapeNumbers shapeNumbers(const shapes::ModelShape &shape, const config::RunConfiguration &configuration)
{
    const auto number = [](int64_t value) { return static_cast<double>(value); };
    const shapes::RopeScaling &rope = shape.ropeScaling;
    files::ShapeNumbers numbers = {{"vocabulary", number(shape.vocabulary)},
                                   {"hidden", number(shape.hidden)},
                                   {"layers", number(shape.layers)},
                                   {"heads", number(shape.heads)},
                                   {"key_value_heads", number(shape.keyValueHeads)},
                                   {"head_size", number(shape.headSize)},
                                   {"ffn_hidden", number(shape.ffnHidden)},
                                   {"norm_eps", shape.normEps},
                                   {"rope_theta", shape.ropeTheta},
                                   {"tied_embeddings", shape.tiedEmbeddings ? 1.0 : 0.0},
                                   {"query_key_value_bias", shape.queryKeyValueBias ? 1.0 : 0.0},
                                   {"output_bias", shape.outputBias ? 1.0 : 0.0},
                                   {"feed_forward_bias", shape.feedForwardBias ? 1.0 : 0.0},
                                   {"query_key_norm", shape.queryKeyNorm ? 1.0 : 0.0},
                                   {"rope_kind", number(static_cast<int64_t>(rope.kind))},
                                   {"rope_factor", rope.factor},
                                   {"rope_original_sequence", number(rope.originalMaxSequence)},
                                   {"rope_low_frequency_factor", rope.lowFrequencyFactor},
                                   {"rope_high_frequency_factor", rope.highFrequencyFactor},
                                   {"rope_beta_fast", rope.betaFast},
                                   {"rope_beta_slow", rope.betaSlow},
                                   {"rope_truncate", rope.truncate ? 1.0 : 0.0},
                                   {"rope_attention_factor", rope.attentionFactor}};
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
        if (shape.windowOf(layer) != 0)
            numbers["window." + std::to_string(layer)] = number(shape.windowOf(layer));
    }
    if (configuration.lora.rank > 0) {
        numbers["lora_rank"] = number(configuration.lora.rank);
        numbers["lora_alpha"] = shapes::adapterAlpha(configuration);
    }
    return numbers;
}

files::Expectation expectationOf(const shapes::ModelShape &shape, const config::RunConfiguration &configuration)
{
    files::Expectation expected;
    expected.optimizer = toText(configuration.optimizer.kind);
    expected.data.globalBatch = configuration.train.globalBatch;
    expected.data.seed = configuration.train.seed;
    expected.data.sequenceLength = configuration.train.sequenceLength;
    expected.data.validation = configuration.data.validation;
    expected.shape = shapeNumbers(shape, configuration);
    return expected;
}

static Result<config::RunConfiguration> configurationOf(const files::Manifest &manifest,
                                                        const std::filesystem::path &checkpoint)
{
    const auto json = nlohmann::ordered_json::parse(manifest.configurationJson, nullptr, false);
    if (!json.is_object())
        return fail("The checkpoint {} has no configuration, so its model is not known.", checkpoint.string());
    config::RunConfiguration configuration;
    const std::string source = "the configuration of " + checkpoint.string();
    if (auto applied = config::applyJson(configuration, json, source); !applied)
        return tl::unexpected(applied.error());
    return configuration;
}

/// Whether head and embedding are one was settled when the run began, by more than its configuration.
static bool isTied(const files::Manifest &manifest)
{
    return std::ranges::none_of(manifest.buckets, [](const files::BucketEntry &bucket) {
        return std::ranges::any_of(bucket.tensors, [](const auto &tensor) { return tensor.name == "head.weight"; });
    });
}

static Result<shapes::ModelShape> shapeOf(const config::RunConfiguration &configuration)
{
    if (configuration.model.path.empty())
        return shapes::presetShape(configuration.model.preset);
    return shapes::readHfConfig(configuration.model.path).map([](shapes::HfConfig config) { return config.shape; });
}

Result<CheckpointModel> modelOf(const files::Manifest &manifest, const std::filesystem::path &checkpoint)
{
    auto configuration = configurationOf(manifest, checkpoint);
    if (!configuration)
        return tl::unexpected(configuration.error());
    auto shape = shapeOf(*configuration);
    if (!shape)
        return fail("The model of {} can't be read any more: {}", checkpoint.string(), shape.error().text);
    shape->tiedEmbeddings = isTied(manifest);
    const auto differences = files::modelDifferences(manifest.shape, shapeNumbers(*shape, *configuration));
    if (!differences.empty())
        return fail("{} is of another model than {} is by now: {}.{}", checkpoint.string(),
                    configuration->model.path.empty() ? configuration->model.preset : configuration->model.path,
                    fmt::join(differences, "; "),
                    configuration->model.path.empty() ? "" : " Put the config.json back that it had then.");
    return CheckpointModel{std::move(*configuration), std::move(*shape)};
}

} // namespace shardscope::pretrained
