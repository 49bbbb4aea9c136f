// SPDX-License-Identifier: Apache-2.0
// fp16 against PyTorch itself: over 50 steps our loss scale is torch.amp.GradScaler's in each, the same steps are
// skipped, and what is not skipped has PyTorch's losses and norms at our weights.
//
// A short growth interval makes the scale rise until gradients overflow, again and again: in fp16 that is where the
// largest element passes 65504, in PyTorch's products and in ours.
#include "tests/model/ranks.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/pytorch_peer.h"
#include "tests/train/training_job.h"

#include <array>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>
#include <torch/torch.h>

using namespace shardscope;
using namespace shardscope::testing;
using nlohmann::json;

namespace {

constexpr int64_t kScalerSteps = 50;

struct ScaledCase
{
    double initialScale; ///< 65536 as the default has it, or so large that the first steps overflow
    int64_t sequences;
    int64_t sequenceLength;
    int worldSize = 1;
    at::Device device = at::kCPU;
};

struct Step
{
    double loss;
    double norm;
    double scale;
    bool skipped;
};

config::RunConfiguration configurationOf(const ScaledCase &test)
{
    config::RunConfiguration configuration = TrainingJob::configurationFor(1);
    configuration.train.steps = kScalerSteps;
    configuration.train.globalBatch = test.sequences;
    configuration.train.sequenceLength = test.sequenceLength;
    configuration.optimizer.clipNorm = 0.5;
    configuration.precision.compute = Precision::Fp16;
    configuration.precision.scaler.initial = test.initialScale;
    configuration.precision.scaler.growthInterval = 4;
    return configuration;
}

/// int64 [steps, sequences, length + 1], of a quarter of the vocabulary.
at::Tensor tokensFor(const config::RunConfiguration &configuration)
{
    return at::randint(0, TrainingJob::shape().vocabulary / 4,
                       {kScalerSteps, configuration.train.globalBatch, configuration.train.sequenceLength + 1},
                       at::detail::createCPUGenerator(11), at::TensorOptions(at::kLong));
}

/// Trains on this rank's part; rank 0 leaves the weights before each step in spec["weights"].
std::vector<Step> trainScaled(const config::RunConfiguration &configuration, const at::Tensor &tokens,
                              engine::Communicator &communicator, const std::filesystem::path &folder, json &spec)
{
    observe::Observer observer;
    model::Decoder decoder(TrainingJob::shape(), configuration, communicator, observer);
    engine::Engine &engine = decoder.engine();
    engine.initialize(5);
    const int64_t length = configuration.train.sequenceLength;
    const int64_t sequences = configuration.train.globalBatch;
    const int64_t own = sequences / communicator.worldSize();
    const std::vector<double> rates = spec["rates"];
    std::vector<Step> steps;
    for (int64_t step = 0; step < kScalerSteps; ++step) {
        json index = {{"parameters", json::array()}};
        dumpWeights(decoder, folder / fmt::format("weights-{}.bin", communicator.rank()), index);
        if (communicator.rank() == 0)
            spec.update(index);
        const at::Tensor rows = tokens[step].narrow(0, communicator.rank() * own, own).to(engine.device());
        const at::Tensor loss =
            decoder.forwardBackward(rows.slice(1, 0, length).contiguous(), rows.slice(1, 1).contiguous(),
                                    1.0 / static_cast<double>(sequences * length), true);
        const engine::StepScalars scalars = engine.reduceScalars(loss);
        engine.optimizerStep(rates[static_cast<size_t>(step)], configuration.optimizer.clipNorm, scalars);
        const auto values = scalars.host();
        steps.push_back({values.lossSum, values.gradientNorm(), values.scale, values.overflowed()});
    }
    return steps;
}

void expectPeersScales(const std::vector<Step> &ours, const json &given)
{
    int skipped = 0;
    for (size_t step = 0; step < ours.size(); ++step) {
        SCOPED_TRACE(fmt::format("step {}", step + 1));
        ASSERT_EQ(ours[step].scale, given.at("scales")[step].get<double>());
        ASSERT_EQ(ours[step].skipped, given.at("skipped")[step].get<bool>());
        EXPECT_NEAR(ours[step].loss / given.at("losses")[step].get<double>(), 1.0, 5e-4);
        skipped += ours[step].skipped ? 1 : 0;
        if (!ours[step].skipped) {
            EXPECT_NEAR(ours[step].norm / given.at("norms")[step].get<double>(), 1.0, 1e-2);
        }
    }
    EXPECT_GT(skipped, 2) << "steps were to be skipped";
    EXPECT_LT(skipped, 30);
}

/// Ours, and what PyTorch is given.
struct ScaledTraining
{
    test::TemporaryFolder folder;
    std::vector<Step> steps;
    json spec;
};

void trainScaledCase(const ScaledCase &test, ScaledTraining &training)
{
    const config::RunConfiguration configuration = configurationOf(test);
    const at::Tensor tokens = tokensFor(configuration);
    json spec = specificationOf(configuration, TrainingJob::shape(), kScalerSteps);
    spec["device"] = test.device.is_cuda() ? "cuda" : "cpu";
    spec["ranks"] = test.worldSize;
    spec["tokens"] = (training.folder.path() / "tokens.bin").string();
    std::ofstream(training.folder.path() / "tokens.bin", std::ios::binary)
        .write(static_cast<const char *>(tokens.const_data_ptr()), static_cast<std::streamsize>(tokens.nbytes()));
    observe::Observer observer;
    const auto trainRank = [&](engine::Communicator &communicator) {
        json own = spec;
        auto steps = trainScaled(configuration, tokens, communicator, training.folder.path(), own);
        if (communicator.rank() == 0) {
            training.steps = std::move(steps);
            training.spec = std::move(own);
        }
    };
    test::runRanks(test.worldSize, observer, trainRank, test.device);
}

void expectPeersScales(const std::array<ScaledCase, 2> &cases)
{
    at::set_num_threads(1);
    std::array<ScaledTraining, 2> trainings;
    json specs;
    for (size_t i = 0; i < cases.size(); ++i) {
        trainScaledCase(cases[i], trainings[i]);
        specs.push_back(trainings[i].spec);
    }
    const auto peer = runPeer("torch_reference.py", specs, trainings.front().folder.path());
    ASSERT_TRUE(peer) << peer.error().text;
    for (size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(fmt::format("from {} on, {} ranks", cases[i].initialScale, cases[i].worldSize));
        expectPeersScales(trainings[i].steps, peer->at(i).at("given"));
    }
}

TEST(PeerScaler, HasTheSameScales)
{
    if (!std::filesystem::exists(peerPython()))
        GTEST_SKIP() << "No PyTorch to compare with: " << peerPython()
                     << " is missing (packaging/setup.sh puts it there)";
    // As few tokens as overflow now and then: products in fp16 are slow on a CPU, ours and PyTorch's.
    expectPeersScales({ScaledCase{65536, 3, 16}, ScaledCase{16777216, 6, 16, 2}});
}

TEST(PeerScalerCuda, HasTheSameScales)
{
    if (!torch::cuda::is_available())
        GTEST_SKIP() << "no CUDA device";
    if (!std::filesystem::exists(peerPython()))
        GTEST_SKIP() << "No PyTorch to compare with: " << peerPython() << " is missing";
    const at::Device gpu(at::kCUDA, 0);
    expectPeersScales({ScaledCase{65536, 6, 32, 1, gpu}, ScaledCase{16777216, 6, 32, 1, gpu}});
}

} // namespace
