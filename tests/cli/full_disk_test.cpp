// SPDX-License-Identifier: Apache-2.0
// A disk that fills up while a run goes on, from end to end: a small file system in memory, in a namespace of its own.
#include "tests/cli/with_worker.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class OnASmallDisk : public test::WithWorker
{
protected:
    void SetUp() override
    {
        WithWorker::SetUp();
        if (IsSkipped())
            return;
        fs::create_directory(disk());
        if (cli.startThrough(onASmallDisk(), {"--version"}).wait().exitCode != 0)
            GTEST_SKIP() << "a file system can't be mounted in a namespace here (unshare -rm, mount -t tmpfs)";
    }
    fs::path disk() const { return cli.folder() / "disk"; }
    std::vector<std::string> onASmallDisk() const
    {
        return {"/usr/bin/unshare",
                "-rm",
                "/bin/sh",
                "-c",
                "mount -t tmpfs -o size=96m tmpfs \"$HOME/disk\" && exec \"$@\"",
                "sh"};
    }
    /// The disk, as the program sees it.
    fs::path diskOf(const test::Program &program) const
    {
        return fs::path(fmt::format("/proc/{}/root", program.pid())) / disk().relative_path();
    }
    /// leaveBytes: what is not filled.
    static void fill(const fs::path &file, int64_t leaveBytes = 0)
    {
        const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        ASSERT_GE(fd, 0);
        for (size_t bytes = 1 << 20; bytes > 0; bytes /= 2) {
            const std::string block(bytes, 'x');
            while (::write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size())) {
            }
        }
        const off_t end = ::lseek(fd, 0, SEEK_END);
        EXPECT_EQ(::ftruncate(fd, end - leaveBytes), 0);
        ::close(fd);
    }
    /// The last step that a run has told of in lines of JSON.
    static int64_t lastStep(const test::Program &program)
    {
        std::istringstream lines(program.outputSoFar());
        int64_t step = 0;
        for (std::string line; std::getline(lines, line);) {
            const auto event = nlohmann::json::parse(line, nullptr, false); // the last one may be half there
            if (event.is_object() && event["event"] == "step" && event["data"]["step"].is_number())
                step = event["data"]["step"];
        }
        return step;
    }
};

TEST_F(OnASmallDisk, trainingGoesOnWhereTheDiskIsFullAndTheUserIsTold)
{
    const std::string out = (disk() / "run").string();
    test::Program program =
        cli.startThrough(onASmallDisk(), arguments("a", {"--steps", "1000000", "--out", out, "--format", "json"}));
    ASSERT_TRUE(test::eventually([&] { return lastStep(program) > 1; }, 60s)) << program.outputSoFar();
    const run::RunFolder folder(diskOf(program) / "run");
    const test::Finished first = cli.run({"checkpoint", folder.root().string(), "--format", "json"});
    ASSERT_EQ(first.exitCode, 0) << first.errors;
    const int64_t whole = nlohmann::json::parse(first.out)["step"];

    fill(diskOf(program) / "full");
    EXPECT_TRUE(test::eventually(
        [&] {
            return program.outputSoFar().find("The recording can't be written; the training goes on.") !=
                   std::string::npos;
        },
        60s))
        << program.outputSoFar();
    const test::Finished second = cli.run({"checkpoint", folder.root().string()});
    EXPECT_EQ(second.exitCode, 1);
    EXPECT_THAT(second.errors, AllOf(HasSubstr("No checkpoint of step"), HasSubstr("No space left on device")));
    const int64_t step = lastStep(program);
    EXPECT_TRUE(test::eventually([&] { return lastStep(program) > step; }, 60s)) << "the training stands still";
    const auto newest = files::CheckpointFolder(folder.checkpointsFolder()).newest();
    ASSERT_TRUE(newest) << "the earlier checkpoint is gone";
    EXPECT_EQ(newest->step, whole);

    fs::remove(diskOf(program) / "full");
    EXPECT_TRUE(test::eventually([&] {
        const auto status = run::readStatus(folder);
        return status && status->recordingProblem.find("can't be written") != std::string::npos;
    }));
    EXPECT_THAT(cli.run({"status", folder.root().string()}).out, HasSubstr("recording   Rank "));
    program.signal(SIGINT);
    const test::Finished finished = program.wait(60s);
    EXPECT_EQ(finished.exitCode, 130) << finished.errors;
    EXPECT_THAT(finished.out, HasSubstr("Checkpoint of step"));
}

TEST_F(OnASmallDisk, whatHasNoRoomThereIsNotOffloadedAndTheRunGoesOn)
{
    const std::vector<std::string> onDisk = {"--set", "offload.path=" + (disk() / "files").string(), "--format",
                                             "json"};
    std::vector<std::string> words = arguments("a", {"--steps", "1000000"});
    words.insert(words.end(), onDisk.begin(), onDisk.end());
    test::Program program = cli.startThrough(onASmallDisk(), words);
    ASSERT_TRUE(test::eventually([&] { return lastStep(program) > 1; }, 60s)) << program.outputSoFar();
    fill(diskOf(program) / "full", 8 << 20);
    for (const char *key : {"offload.optimizer=nvme", "offload.parameters=nvme"}) {
        const test::Finished refused = cli.run({"set", "a", key, "--force"});
        EXPECT_EQ(refused.exitCode, 2) << refused.out;
        EXPECT_THAT(refused.errors, AllOf(HasSubstr((disk() / "files").string() + " has too little room"),
                                          HasSubstr("for 2 ranks"), HasSubstr("8.00 MiB are free")));
    }
    EXPECT_FALSE(fs::exists(diskOf(program) / "files")) << "what was tried is taken back";
    const int64_t step = lastStep(program);
    EXPECT_TRUE(test::eventually([&] { return lastStep(program) > step; }, 60s)) << "the training stands still";

    fs::remove(diskOf(program) / "full");
    const test::Finished set = cli.run({"set", "a", "offload.optimizer=nvme"});
    EXPECT_EQ(set.exitCode, 0) << set.errors;
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(60s).exitCode, 130);
}

TEST_F(OnASmallDisk, noRunBeginsThatHasNoRoomThere)
{
    const test::Finished refused =
        cli.startThrough(onASmallDisk(), arguments("a", {"--steps", "1", "--set", "model.preset=350m", "--set",
                                                         "offload.optimizer=nvme", "--set",
                                                         "offload.path=" + (disk() / "files").string()}))
            .wait();
    EXPECT_EQ(refused.exitCode, 2);
    EXPECT_THAT(refused.errors,
                AllOf(HasSubstr((disk() / "files").string()), HasSubstr("are needed for 2 ranks"),
                      HasSubstr("are free"), HasSubstr("Set offload.path to a folder on another drive")));
    EXPECT_FALSE(fs::exists(cli.runs() / "a"));
}
