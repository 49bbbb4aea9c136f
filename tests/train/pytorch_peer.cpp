// SPDX-License-Identifier: Apache-2.0
#include "tests/train/pytorch_peer.h"

#include "core/base/file.h"
#include "core/train/learning_rate.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace shardscope::testing {

std::filesystem::path peerPython()
{
    // A machine that has tests but no build: its own Python.
    if (const char *asked = std::getenv("SHARDSCOPE_PYTHON"); asked && *asked)
        return asked;
    const char *deps = std::getenv("SHARDSCOPE_DEPS");
    const char *source = std::getenv("SHARDSCOPE_SOURCE");
    const std::filesystem::path folder =
        deps && *deps ? std::filesystem::path(deps) : std::filesystem::path(source ? source : ".") / ".deps";
    return folder / "venv/bin/python";
}

/// Appends all weights in fp32, in the order of the units, to a file; fills the specification's index.
void dumpWeights(model::Decoder &decoder, const std::filesystem::path &path, json &spec)
{
    std::ofstream file(path, std::ios::binary | std::ios::app);
    int64_t elements = 0;
    for (const engine::Bucket &bucket : decoder.engine().buckets()) {
        for (const engine::ParameterPlace &place : bucket.layout.parameters) {
            const at::Tensor weight = decoder.engine().gatherParameter(place.shape.name).value().cpu().contiguous();
            file.write(static_cast<const char *>(weight.const_data_ptr()),
                       static_cast<std::streamsize>(weight.nbytes()));
            spec["parameters"].push_back({place.shape.name, place.shape.sizes});
            elements += weight.numel();
        }
    }
    spec["weights"] = path.string();
    spec["weight_elements"] = elements;
}

void dumpTokens(const data::Dataset &dataset, int64_t samples, const std::filesystem::path &path)
{
    std::ofstream file(path, std::ios::binary);
    std::vector<int64_t> sample(static_cast<size_t>(dataset.sequenceLength()) + 1);
    for (int64_t index = 0; index < samples; ++index) {
        dataset.sample(index, sample);
        file.write(reinterpret_cast<const char *>(sample.data()),
                   static_cast<std::streamsize>(sample.size() * sizeof(int64_t)));
    }
}

json specificationOf(const config::RunConfiguration &configuration, const shapes::ModelShape &shape, int64_t steps)
{
    json spec = {{"layers", shape.layers},
                 {"heads", shape.heads},
                 {"key_value_heads", shape.keyValueHeads},
                 {"head_size", shape.headSize},
                 {"norm_eps", shape.normEps},
                 {"rope_theta", shape.ropeTheta},
                 {"steps", steps},
                 {"global_batch", configuration.train.globalBatch},
                 {"sequence_length", configuration.train.sequenceLength},
                 {"precision", toText(configuration.precision.compute)},
                 {"scaler",
                  {{"initial", configuration.precision.scaler.initial},
                   {"growth_factor", configuration.precision.scaler.growthFactor},
                   {"growth_interval", configuration.precision.scaler.growthInterval},
                   {"backoff", configuration.precision.scaler.backoff}}},
                 {"optimizer", toText(configuration.optimizer.kind)},
                 {"betas", configuration.optimizer.betas},
                 {"eps", configuration.optimizer.eps},
                 {"momentum", configuration.optimizer.momentum},
                 {"weight_decay", configuration.optimizer.weightDecay},
                 {"clip_norm", configuration.optimizer.clipNorm},
                 {"parameters", json::array()}};
    const train::LearningRateSchedule schedule{configuration.optimizer.learningRate,
                                               configuration.optimizer.minLearningRate,
                                               configuration.optimizer.warmupSteps, steps};
    for (int64_t step = 1; step <= steps; ++step)
        spec["rates"].push_back(schedule.at(step));
    return spec;
}

Result<json> runPeer(const std::string &script, const json &spec, const std::filesystem::path &folder)
{
    const auto specPath = folder / "spec.json";
    const auto resultPath = folder / "peer.json";
    std::ofstream(specPath) << spec.dump();
    const auto quoted = [](const std::filesystem::path &path) {
        std::string text = "'";
        for (const char c : path.string())
            text += c == '\'' ? "'\\''" : std::string(1, c);
        return text + "'";
    };
    const char *source = std::getenv("SHARDSCOPE_SOURCE");
    const auto path = std::filesystem::path(source ? source : ".") / "tests/peers" / script;
    const std::string command =
        fmt::format("{} {} {} > {}", quoted(peerPython()), quoted(path), quoted(specPath), quoted(resultPath));
    if (const int status = std::system(command.c_str()); status != 0)
        return fail("{} ended with {}", command, status);
    return readTextFile(resultPath).map([](const std::string &text) { return json::parse(text); });
}

void expectNear(const std::vector<double> &ours, const std::vector<double> &peer, double tolerance, const char *what)
{
    ASSERT_EQ(ours.size(), peer.size());
    for (size_t step = 0; step < ours.size(); ++step)
        EXPECT_NEAR(ours[step] / peer[step], 1.0, tolerance) << what << ", step " << step + 1;
}

} // namespace shardscope::testing
