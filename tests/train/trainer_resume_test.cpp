// SPDX-License-Identifier: Apache-2.0
// Interrupted and resumed equals uninterrupted, to the bit; what can't be resumed is refused by all ranks.
#include "core/base/file.h"
#include "tests/train/training_job.h"

#include <fstream>
#include <gmock/gmock.h>

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

/// Masters and moments of all ranks as they lie on the disk.
std::vector<std::string> bytesOf(const std::filesystem::path &checkpoint)
{
    std::vector<std::string> all;
    for (int rank = 0; rank < kRanks; ++rank)
        all.push_back(readTextFile(checkpoint / fmt::format("rank-{}.bin", rank)).value());
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
    stream.seekp(100);
    stream.write("damage", 6);
    stream.close();
    EXPECT_THAT(refusal(m_options), AllOf(HasSubstr("Rank 1: "), HasSubstr("rank-1.bin is damaged"),
                                          HasSubstr("Delete that checkpoint's folder")));
}

TEST_F(RefusedResume, AMissingManifest)
{
    std::filesystem::remove(m_checkpoint / "manifest.json");
    EXPECT_THAT(refusal(m_options), HasSubstr("manifest.json"));
}

TEST_F(RefusedResume, AnotherJob)
{
    JobOptions other = m_options;
    other.worldSize = 1;
    other.configuration = TrainingJob::configurationFor(1);
    other.configuration.train.seed = 5;
    other.configuration.optimizer.kind = OptimizerKind::Sgd;
    const std::string error = refusal(other);
    EXPECT_THAT(error, AllOf(HasSubstr("written by 2 ranks, this job has 1"), HasSubstr("its seed is 0, this job's 5"),
                             HasSubstr("its optimizer is adamw, this job's sgd")));
}

TEST_F(RefusedResume, ChangedData)
{
    std::ofstream(m_job.folder() / "text.txt", std::ios::app) << "one more line\n";
    EXPECT_THAT(refusal(m_options), HasSubstr("the data have changed"));
}

} // namespace
