// SPDX-License-Identifier: Apache-2.0
// Interrupted and resumed equals uninterrupted, to the bit; what can't be resumed is refused by all ranks.
#include "core/base/file.h"
#include "tests/train/training_job.h"

#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

constexpr int kRanks = 2;

JobOptions sixSteps(Strategy strategy, Precision precision, OptimizerKind optimizer)
{
    JobOptions options;
    options.worldSize = kRanks;
    options.configuration = TrainingJob::configurationFor(kRanks, 2);
    options.configuration.train.steps = 6;
    options.configuration.checkpoint.every = 3;
    options.configuration.parallel.strategy = strategy;
    options.configuration.precision.compute = precision;
    options.configuration.optimizer.kind = optimizer;
    options.configuration.optimizer.momentum = optimizer == OptimizerKind::Sgd ? 0.9 : 0;
    return options;
}

/// Masters and moments of all ranks as they lie on the disk, without the page that names the checkpoint.
std::vector<std::string> bytesOf(const std::filesystem::path &checkpoint)
{
    std::vector<std::string> all;
    for (int rank = 0; rank < kRanks; ++rank)
        all.push_back(readTextFile(checkpoint / fmt::format("rank-{}.bin", rank)).value().substr(4096));
    return all;
}

class Resume : public ::testing::TestWithParam<std::tuple<Strategy, Precision, OptimizerKind>>
{
};

TEST_P(Resume, GoesOnToTheBit)
{
    const TrainingJob job;
    const auto &[strategy, precision, optimizer] = GetParam();
    JobOptions options = sixSteps(strategy, precision, optimizer);
    const JobOutcome whole = job.run(options);
    const auto last = job.checkpoints() / "step-000006";
    const auto expected = bytesOf(last);
    std::filesystem::remove_all(last);
    options.resumeFrom = job.checkpoints() / "step-000003";
    const JobOutcome resumed = job.run(options);
    ASSERT_EQ(whole.steps.size(), 6U);
    ASSERT_EQ(resumed.steps.size(), 3U);
    EXPECT_EQ(resumed.steps.front().number, 4);
    for (size_t step = 0; step < 3; ++step) {
        EXPECT_EQ(resumed.losses()[step], whole.losses()[step + 3]);
        EXPECT_EQ(resumed.norms()[step], whole.norms()[step + 3]);
        EXPECT_EQ(resumed.steps[step].result.learningRate, whole.steps[step + 3].result.learningRate);
    }
    EXPECT_EQ(resumed.steps.back().result.validationLoss, whole.steps.back().result.validationLoss);
    EXPECT_TRUE(bytesOf(last) == expected) << "weights or moments differ";
}

INSTANTIATE_TEST_SUITE_P(All, Resume,
                         ::testing::Combine(::testing::Values(Strategy::Full, Strategy::GradOp, Strategy::None),
                                            ::testing::Values(Precision::Fp32, Precision::Bf16),
                                            ::testing::Values(OptimizerKind::AdamW, OptimizerKind::Sgd)),
                         [](const auto &info) {
                             return fmt::format("{}_{}_{}", toText(std::get<0>(info.param)),
                                                toText(std::get<1>(info.param)), toText(std::get<2>(info.param)));
                         });

class RefusedResume : public ::testing::Test
{
protected:
    void SetUp() override { m_job.run(m_options); }

    /// The error, the same on all ranks.
    std::string refusal(JobOptions options) const
    {
        options.resumeFrom = m_checkpoint;
        const JobOutcome outcome = m_job.run(options);
        for (const auto &end : outcome.ends) {
            EXPECT_FALSE(end);
            EXPECT_EQ(end.error().text, outcome.ends.front().error().text);
        }
        EXPECT_TRUE(outcome.steps.empty());
        return outcome.ends.front().error().text;
    }

    TrainingJob m_job;
    JobOptions m_options = sixSteps(Strategy::Full, Precision::Fp32, OptimizerKind::AdamW);
    std::filesystem::path m_checkpoint = m_job.checkpoints() / "step-000003";
};

TEST_F(RefusedResume, ADamagedFileOfOneRank)
{
    const auto file = m_checkpoint / "rank-1.bin";
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(4096 + 100);
    stream.write("damage", 6);
    stream.close();
    EXPECT_THAT(refusal(m_options), AllOf(HasSubstr("Rank 1: "), HasSubstr("rank-1.bin is damaged: master of "),
                                          HasSubstr("Delete that checkpoint's folder")));
}

TEST_F(RefusedResume, ExchangedFiles)
{
    std::filesystem::rename(m_checkpoint / "rank-0.bin", m_checkpoint / "x");
    std::filesystem::rename(m_checkpoint / "rank-1.bin", m_checkpoint / "rank-0.bin");
    std::filesystem::rename(m_checkpoint / "x", m_checkpoint / "rank-1.bin");
    EXPECT_THAT(refusal(m_options), AllOf(HasSubstr("Rank 0: "), HasSubstr("it is rank 1's: files were exchanged"),
                                          HasSubstr("Rank 1: "), HasSubstr("it is rank 0's: files were exchanged")));
}

TEST_F(RefusedResume, AFileOfAnotherStep)
{
    std::filesystem::copy_file(m_job.checkpoints() / "step-000006" / "rank-0.bin", m_checkpoint / "rank-0.bin",
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(refusal(m_options), HasSubstr("it is rank 0's of another checkpoint, of step 6"));
}

/// Changes the manifest as a foreign checkpoint's would be.
void edit(const std::filesystem::path &checkpoint, const std::function<void(nlohmann::json &)> &change)
{
    nlohmann::json manifest = nlohmann::json::parse(readTextFile(checkpoint / "manifest.json").value());
    change(manifest);
    std::ofstream(checkpoint / "manifest.json") << manifest;
}

TEST_F(RefusedResume, ATensorRemovedAddedOrTransposedAndOtherHeads)
{
    edit(m_checkpoint, [](nlohmann::json &manifest) {
        for (nlohmann::json &bucket : manifest["buckets"]) {
            for (nlohmann::json &tensor : bucket["tensors"]) {
                if (tensor["name"] == "block.0.attention.q.weight")
                    tensor["name"] = "block.0.attention.query.weight";
                if (tensor["name"] == "block.1.ffn.up.weight")
                    std::swap(tensor["shape"][0], tensor["shape"][1]);
            }
        }
        manifest["shape"]["heads"] = manifest["shape"]["heads"].get<int>() * 2;
    });
    EXPECT_THAT(refusal(m_options),
                AllOf(HasSubstr("block.0.attention.q.weight is missing in it"),
                      HasSubstr("block.0.attention.query.weight is not in this model"),
                      HasSubstr("block.1.ffn.up.weight has shape ["), HasSubstr("its model has heads = ")));
}

TEST_F(RefusedResume, NothingIsTouched)
{
    edit(m_checkpoint, [](nlohmann::json &manifest) { manifest["shape"]["heads"] = 1; });
    const auto file = m_job.checkpoints() / "step-000006" / "rank-1.bin";
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(4096 + 100).write("damage", 6);
    for (const auto &checkpoint : {m_checkpoint, m_job.checkpoints() / "step-000006"}) {
        JobOptions options = m_options;
        options.resumeFrom = checkpoint;
        options.prepare = [](model::Decoder &decoder) { // after the refusal
            for (const engine::StateShard &shard : decoder.engine().stateShards())
                EXPECT_EQ(shard.data_S.abs().sum().item<float>(), 0) << shard.layout->name << " " << shard.state;
        };
        options.beforeResume = [](model::Decoder &decoder) {
            for (const engine::StateShard &shard : decoder.engine().stateShards())
                shard.data_S.zero_();
        };
        EXPECT_FALSE(m_job.run(options).ends.front());
    }
}

TEST_F(RefusedResume, AMissingManifest)
{
    std::filesystem::remove(m_checkpoint / "manifest.json");
    EXPECT_THAT(refusal(m_options), HasSubstr("manifest.json"));
}

TEST_F(RefusedResume, AnotherJob)
{
    JobOptions other = m_options;
    other.configuration.train.seed = 5;
    other.configuration.optimizer.kind = OptimizerKind::Sgd;
    const std::string error = refusal(other);
    EXPECT_THAT(error,
                AllOf(HasSubstr("its seed is 0, this job's 5"), HasSubstr("its optimizer is adamw, this job's sgd")));
}

TEST_F(RefusedResume, ChangedData)
{
    std::ofstream(m_job.folder() / "text.txt", std::ios::app) << "one more line\n";
    EXPECT_THAT(refusal(m_options), HasSubstr("the data have changed"));
}

/// In the middle of the second epoch, with other ranks, micro-batches and accumulation than before.
TEST(ResumeInTheData, GoesOnWithTheNextSample)
{
    const TrainingJob job;
    std::filesystem::resize_file(job.folder() / "text.txt", 2500); // 70 windows: an epoch is less than nine steps
    JobOptions options;
    options.worldSize = 2;
    options.configuration = TrainingJob::configurationFor(2, 2);
    options.configuration.train.steps = 16;
    options.configuration.checkpoint.every = 11;
    ASSERT_LT(job.dataset(options.configuration).trainingWindows(), 11 * 8);
    const JobOutcome whole = job.run(options);
    for (const auto &[ranks, accumulation] : {std::pair(1, 4), std::pair(4, 1)}) {
        JobOptions other = options;
        other.worldSize = ranks;
        other.configuration = TrainingJob::configurationFor(ranks, accumulation);
        other.configuration.train.steps = 16;
        other.resumeFrom = job.checkpoints() / "step-000011";
        const JobOutcome resumed = job.run(other);
        ASSERT_EQ(resumed.steps.size(), 5U) << ranks;
        for (size_t step = 0; step < 5; ++step) {
            EXPECT_NEAR(resumed.losses()[step], whole.losses()[step + 11], 1e-5) << ranks;
            EXPECT_EQ(resumed.steps[step].result.learningRate, whole.steps[step + 11].result.learningRate);
        }
    }
}

/// Three ranks can't have a global batch of 8: with one of 6 they still read on where the two stopped.
TEST(ResumeInTheData, AnotherGlobalBatchBeginsAtTheSameSample)
{
    const TrainingJob job;
    JobOptions options = sixSteps(Strategy::Full, Precision::Fp32, OptimizerKind::AdamW);
    job.run(options);
    options.worldSize = 3;
    options.configuration.train.globalBatch = 6;
    options.configuration.train.microBatch = 1;
    options.resumeFrom = job.checkpoints() / "step-000003";
    const JobOutcome resumed = job.run(options);
    ASSERT_TRUE(resumed.ends.front()) << resumed.ends.front().error().text;
    EXPECT_EQ(files::CheckpointFolder::readManifest(job.checkpoints() / "step-000006").value().data.nextSample,
              3 * 8 + 3 * 6);
}

} // namespace
