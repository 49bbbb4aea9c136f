// SPDX-License-Identifier: Apache-2.0
// kill -9 at any moment of writing: the newest whole checkpoint always loads. tests/train/kill_checkpoints.sh does the
// same to whole jobs.
#include "core/base/clock.h"
#include "tests/files/example_checkpoint.h"
#include "tests/files/temporary_folder.h"
#include "tests/files/temporary_in_memory.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::files;
using namespace shardscope::testing;

namespace {

/// Writes checkpoints of growing steps, and some again, until it is killed; says through \a begun that it is about to.
[[noreturn]] void writeForever(const CheckpointFolder &folder, int64_t step, CheckpointFormat format, int begun)
{
    if (::write(begun, "b", 1) != 1)
        ::_exit(1);
    for (;; ++step) {
        writeExample(folder, step, format);
        if (step % 3 == 0)
            writeExample(folder, step, format);
        static_cast<void>(folder.prune(2));
    }
}

TEST(KilledWriter, LeavesAWholeCheckpointFiftyTimes)
{
    const TemporaryInMemory inMemory;
    const TemporaryFolder temporary;
    const CheckpointFolder folder(temporary.path());
    std::mt19937 random(20261129);
    // As long as this machine's disk takes for a checkpoint: the slowest of a few, the last of which replace another.
    int64_t checkpointNs = 0;
    for (int i = 0; i < 5; ++i) {
        const int64_t beganNs = monotonicNs();
        writeExample(folder, 1);
        checkpointNs = std::max(checkpointNs, monotonicNs() - beganNs);
    }
    std::uniform_int_distribution<int64_t> delayNs(0, checkpointNs * 4);
    int64_t newest = 1;
    int brokenOff = 0;
    for (int kill = 0; kill < 50; ++kill) {
        const auto format = kill % 2 == 0 ? CheckpointFormat::Sharded : CheckpointFormat::Full;
        std::array<int, 2> begun{};
        ASSERT_EQ(::pipe(begun.data()), 0);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0)
            writeForever(folder, newest, format, begun[1]);
        ::close(begun[1]);
        char byte = 0;
        ASSERT_EQ(::read(begun[0], &byte, 1), 1) << "the writer did not begin";
        ::close(begun[0]);
        std::this_thread::sleep_for(std::chrono::nanoseconds(delayNs(random)));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        for (const auto &entry : std::filesystem::directory_iterator(temporary.path()))
            brokenOff += entry.path().filename().string().ends_with(".partial") ? 1 : 0;
        const auto found = folder.newest();
        ASSERT_TRUE(found) << "after kill " << kill;
        EXPECT_GE(found->step, newest);
        EXPECT_TRUE(folder.damagedAfterNewest().empty());
        newest = found->step;
        auto reader = CheckpointReader::open(found->path);
        ASSERT_TRUE(reader) << reader.error().text;
        const auto verified = reader->verify(exampleParts());
        EXPECT_TRUE(verified) << verified.error().text;
    }
    EXPECT_GT(newest, 2) << "no writer got far enough";
    EXPECT_GT(brokenOff, 5) << "no writer was killed while it wrote";
}

} // namespace
