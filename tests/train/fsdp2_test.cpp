// SPDX-License-Identifier: Apache-2.0
// Against PyTorch's FSDP2 (the wheel's own Python, two ranks over Gloo): the same weights and tokens, twenty steps with
// clipping; losses, gradient norms, and what the steps did to the weights.
#include "tests/train/pytorch_peer.h"
#include "tests/train/training_job.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::testing;
using nlohmann::json;

namespace {

constexpr int64_t kFsdpSteps = 20;
constexpr int kRanks = 2;

struct FsdpCase
{
    std::string name;
    Precision precision;
    OptimizerKind optimizer;
    Strategy strategy;
};

const FsdpCase kCases[] = {{"fp32_adamw", Precision::Fp32, OptimizerKind::AdamW, Strategy::Full},
                           {"fp32_sgd", Precision::Fp32, OptimizerKind::Sgd, Strategy::GradOp},
                           {"bf16_adamw", Precision::Bf16, OptimizerKind::AdamW, Strategy::GradOp},
                           {"bf16_sgd", Precision::Bf16, OptimizerKind::Sgd, Strategy::Full}};

config::RunConfiguration configurationFor(const FsdpCase &test)
{
    config::RunConfiguration configuration = TrainingJob::configurationFor(kRanks);
    configuration.train.steps = kFsdpSteps;
    configuration.precision.compute = test.precision;
    configuration.optimizer.kind = test.optimizer;
    configuration.optimizer.momentum = test.optimizer == OptimizerKind::Sgd ? 0.9 : 0;
    configuration.optimizer.clipNorm = 0.5;
    configuration.parallel.strategy = test.strategy;
    return configuration;
}

std::vector<float> readWeights(const std::filesystem::path &path)
{
    std::vector<float> weights(std::filesystem::file_size(path) / sizeof(float));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char *>(weights.data()), static_cast<std::streamsize>(weights.size() * sizeof(float)));
    return weights;
}

/// ‖ours − theirs‖ ÷ ‖theirs − start‖: of an update, how far we are off.
double updateError(const std::vector<float> &ours, const std::vector<float> &theirs, const std::vector<float> &start)
{
    double off = 0;
    double moved = 0;
    for (size_t i = 0; i < theirs.size(); ++i) {
        off += std::pow(double{ours.at(i)} - theirs[i], 2);
        moved += std::pow(double{theirs[i]} - start.at(i), 2);
    }
    return std::sqrt(off / moved);
}

/// Ours: the curve, and the weights before, after the first and after the last step in files.
struct OurRun
{
    JobOutcome outcome;
    json spec;
};

OurRun trainOurs(const TrainingJob &job, const FsdpCase &test)
{
    OurRun run;
    JobOptions options;
    options.worldSize = kRanks;
    options.configuration = configurationFor(test);
    const auto dump = [&](model::Decoder &decoder, const std::string &when) {
        json spec = specificationOf(options.configuration, TrainingJob::shape(), kFsdpSteps);
        const int rank = decoder.engine().communicator().rank();
        dumpWeights(decoder, job.folder() / fmt::format("ours-{}-{}-{}.bin", test.name, when, rank), spec);
        if (rank == 0 && when == "start")
            run.spec = spec;
    };
    options.prepare = [&](model::Decoder &decoder) { dump(decoder, "start"); };
    options.stepDone = [&](model::Decoder &decoder, int64_t step) {
        if (step == 1 || step == kFsdpSteps)
            dump(decoder, step == 1 ? "first" : "last");
    };
    run.outcome = job.run(options);
    return run;
}

class Fsdp2 : public ::testing::Test
{
protected:
    /// All of the peer's trainings in one go: it takes its time to start.
    json trainTheirs(json spec) const
    {
        spec["folder"] = m_job.folder().string();
        spec["ranks"] = kRanks;
        spec["tokens"] = (m_job.folder() / "tokens.bin").string();
        const config::RunConfiguration configuration = configurationFor(kCases[0]);
        dumpTokens(m_job.dataset(configuration), kFsdpSteps * configuration.train.globalBatch,
                   m_job.folder() / "tokens.bin");
        for (const FsdpCase &test : kCases) {
            spec["cases"].push_back({{"name", test.name},
                                     {"precision", toText(test.precision)},
                                     {"optimizer", toText(test.optimizer)},
                                     {"momentum", configurationFor(test).optimizer.momentum},
                                     {"reshard", test.strategy == Strategy::Full}});
        }
        const auto peer = runPeer("torch_fsdp2.py", spec, m_job.folder());
        EXPECT_TRUE(peer) << peer.error().text;
        return peer ? peer->at("cases") : json();
    }
    double updateErrorOf(const FsdpCase &test, const std::string &when) const
    {
        const auto ours = [&](const std::string &which) {
            return readWeights(m_job.folder() / fmt::format("ours-{}-{}-0.bin", test.name, which));
        };
        return updateError(ours(when), readWeights(m_job.folder() / fmt::format("{}-{}.bin", test.name, when)),
                           ours("start"));
    }
    TrainingJob m_job;
};

TEST_F(Fsdp2, HasTheSameLossesNormsAndClippedUpdates)
{
    if (!std::filesystem::exists(peerPython()))
        GTEST_SKIP() << "No PyTorch to compare with: " << peerPython()
                     << " is missing (packaging/setup.sh puts it there)";
    std::vector<OurRun> runs;
    for (const FsdpCase &test : kCases)
        runs.push_back(trainOurs(m_job, test));
    const json theirs = trainTheirs(runs.front().spec);
    ASSERT_FALSE(theirs.is_null());
    for (size_t i = 0; i < std::size(kCases); ++i) {
        const FsdpCase &test = kCases[i];
        SCOPED_TRACE(test.name);
        const bool isFp32 = test.precision == Precision::Fp32;
        const std::vector<double> norms = runs[i].outcome.norms();
        expectNear(runs[i].outcome.losses(), theirs.at(test.name).at("losses"), isFp32 ? 1e-5 : 5e-4, "loss");
        expectNear(norms, theirs.at(test.name).at("norms"), isFp32 ? 1e-5 : 1e-2, "norm");
        EXPECT_GT(*std::ranges::min_element(norms), 0.5) << "clipping was to be active";
        const double first = updateErrorOf(test, "first");
        const double last = updateErrorOf(test, "last");
        fmt::print("{}: the first update is off by {:.1e} of itself, all {} together by {:.1e}\n", test.name, first,
                   kFsdpSteps, last);
        EXPECT_LT(last, isFp32 ? 1e-5 : 1e-2);
        // AdamW's first is ± the rate whatever the gradient's size: what rounding dominates goes either way.
        if (test.optimizer == OptimizerKind::Sgd) {
            EXPECT_LT(first, isFp32 ? 1e-5 : 1e-2);
        }
    }
}

} // namespace
