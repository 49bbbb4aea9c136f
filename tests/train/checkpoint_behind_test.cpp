// SPDX-License-Identifier: Apache-2.0
// Checkpoints behind the training: the same files, the same losses, one outcome for all ranks.
#include "core/base/file.h"
#include "tests/files/failing_rename.h"
#include "tests/files/temporary_in_memory.h"
#include "tests/train/training_job.h"

#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

JobOptions eightSteps(int ranks, bool asynchronous, CheckpointFormat format = CheckpointFormat::Sharded)
{
    JobOptions options;
    options.worldSize = ranks;
    options.configuration = TrainingJob::configurationFor(ranks);
    options.configuration.train.steps = 8;
    options.configuration.checkpoint.every = 3;
    options.configuration.checkpoint.keep = 10;
    options.configuration.checkpoint.asynchronous = asynchronous;
    options.configuration.checkpoint.format = format;
    return options;
}

std::vector<std::string> warningsOf(const JobOutcome &outcome)
{
    std::vector<std::string> texts;
    for (const control::RankMessage &message : outcome.messages) {
        if (const auto *warning = std::get_if<control::WarningMessage>(&message))
            texts.push_back(warning->text);
    }
    return texts;
}

std::vector<int64_t> wholeSteps(const std::filesystem::path &root)
{
    std::vector<int64_t> steps;
    for (const files::CheckpointInfo &info : files::CheckpointFolder(root).whole())
        steps.push_back(info.step);
    return steps;
}

/// The sections' checksums by bucket, state and range: equal for equal content.
std::vector<std::string> checksumsIn(const std::filesystem::path &checkpoint)
{
    std::vector<std::string> all;
    const files::Manifest manifest = files::CheckpointFolder::readManifest(checkpoint).value();
    for (const files::FileEntry &file : manifest.files) {
        for (const files::SectionEntry &section : file.sections)
            all.push_back(fmt::format("{} {} {} {}", section.bucket, section.state, section.elements.begin,
                                      section.checksums.empty() ? 0 : section.checksums.front()));
    }
    std::ranges::sort(all);
    return all;
}

class CheckpointBehind : public ::testing::TestWithParam<std::tuple<int, CheckpointFormat>>
{
};

TEST_P(CheckpointBehind, WritesWhatOneAtOnceDoes)
{
    const auto &[ranks, format] = GetParam();
    const TemporaryInMemory inMemory;
    const TrainingJob job;
    const auto runIn = [&](bool asynchronous, const std::string &folder) {
        JobOptions options = eightSteps(ranks, asynchronous, format);
        options.checkpointsOfRank = [&, folder](int) { return job.folder() / folder; };
        return job.run(options);
    };
    const JobOutcome atOnce = runIn(false, "at once");
    const JobOutcome behind = runIn(true, "behind");
    EXPECT_EQ(behind.losses(), atOnce.losses());
    EXPECT_THAT(warningsOf(behind), ElementsAre());
    EXPECT_THAT(wholeSteps(job.folder() / "behind"), ElementsAre(3, 6, 8)); // the last one at the end
    for (const char *step : {"step-000003", "step-000006", "step-000008"})
        EXPECT_EQ(checksumsIn(job.folder() / "behind" / step), checksumsIn(job.folder() / "at once" / step)) << step;
    std::vector<int64_t> told;
    for (const control::RankMessage &message : behind.messages) {
        if (const auto *checkpoint = std::get_if<control::CheckpointMessage>(&message))
            told.push_back(checkpoint->step);
    }
    EXPECT_THAT(told, ElementsAre(3, 6, 8));
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointBehind,
                         ::testing::Values(std::tuple(1, CheckpointFormat::Sharded),
                                           std::tuple(3, CheckpointFormat::Sharded),
                                           std::tuple(2, CheckpointFormat::Full)),
                         [](const auto &info) {
                             return fmt::format("{}_{}", std::get<0>(info.param), toText(std::get<1>(info.param)));
                         });

/// A full disk, for a rank or at the last moment: all ranks go on alike, and earlier checkpoints stay whole.
class FullDisk : public ::testing::TestWithParam<bool>
{
protected:
    bool asynchronous() const { return GetParam(); }
    TemporaryInMemory m_inMemory;
    TrainingJob m_job;
};

TEST_P(FullDisk, OfOneRankIsAWarningOfAll)
{
    // Rank 1's folder leads to rank 0's but for one file, which is on a disk that is full.
    const auto other = m_job.folder() / "of rank 1";
    const auto partial = other / ".step-000006.partial";
    std::filesystem::create_directories(partial);
    std::filesystem::create_symlink("/dev/full", partial / "rank-1.bin");
    for (const char *step : {".step-000003.partial", ".step-000008.partial"})
        std::filesystem::create_directory_symlink(m_job.checkpoints() / step, other / step);
    JobOptions options = eightSteps(2, asynchronous());
    options.checkpointsOfRank = [&](int rank) { return rank == 1 ? other : m_job.checkpoints(); };
    const JobOutcome outcome = m_job.run(options);
    for (const auto &end : outcome.ends)
        EXPECT_TRUE(end) << end.error().text;
    EXPECT_EQ(outcome.steps.size(), 8U);
    EXPECT_THAT(
        warningsOf(outcome),
        ElementsAre(AllOf(
            HasSubstr("No checkpoint of step 6; the training goes on, and earlier checkpoints are whole. Rank 1: "),
            HasSubstr("No space left on device"))));
    EXPECT_THAT(wholeSteps(m_job.checkpoints()), ElementsAre(3, 8));
    EXPECT_FALSE(std::filesystem::exists(m_job.checkpoints() / ".step-000006.partial"));
}

TEST_P(FullDisk, AtTheLastRenameIsAWarningOfAll)
{
    const FailingRename failing((m_job.checkpoints() / "step-000006").string());
    const int before = FailingRename::failed();
    const JobOutcome outcome = m_job.run(eightSteps(2, asynchronous()));
    EXPECT_EQ(FailingRename::failed(), before + 1);
    for (const auto &end : outcome.ends)
        EXPECT_TRUE(end) << end.error().text;
    EXPECT_THAT(warningsOf(outcome), ElementsAre(AllOf(HasSubstr("No checkpoint of step 6"), HasSubstr("Can't rename"),
                                                       HasSubstr("No space left on device"))));
    EXPECT_THAT(wholeSteps(m_job.checkpoints()), ElementsAre(3, 8));
}

TEST_P(FullDisk, AtTheEndIsAnErrorOfAll)
{
    const FailingRename failing((m_job.checkpoints() / "step-000008").string());
    JobOptions options = eightSteps(2, asynchronous());
    options.configuration.checkpoint.keep = 1;
    const JobOutcome outcome = m_job.run(options);
    for (const auto &end : outcome.ends) {
        ASSERT_FALSE(end);
        EXPECT_THAT(end.error().text, HasSubstr("No space left on device"));
    }
    EXPECT_THAT(wholeSteps(m_job.checkpoints()), ElementsAre(6)); // the one that is kept
}

INSTANTIATE_TEST_SUITE_P(All, FullDisk, ::testing::Bool(),
                         [](const auto &info) { return std::string(info.param ? "behind" : "at_once"); });

TEST(CheckpointBehindCommands, AStopAndAPauseWaitForIt)
{
    const TemporaryInMemory inMemory;
    const TrainingJob job;
    JobOptions options = eightSteps(2, true);
    options.configuration.checkpoint.every = 0;
    options.script.poll = [](int64_t poll) {
        train::CommandSet commands;
        commands.checkpoint = commands.pause = poll == 2;
        commands.stop = poll == 5;
        return commands;
    };
    options.script.whilePaused.emplace_back(control::Command::Unpause);
    const JobOutcome outcome = job.run(options);
    for (const auto &end : outcome.ends)
        EXPECT_EQ(end.value(), train::Trainer::End::Stopped);
    EXPECT_THAT(wholeSteps(job.checkpoints()), ElementsAre(3, 6));
}

} // namespace
