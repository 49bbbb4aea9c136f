// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/run/process_identity.h"
#include "core/run/run_list.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"
#include "tests/support/temporary_folder.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::run;
using shardscope::test::TemporaryFolder;
using testing::HasSubstr;

static RunStatus fullStatus()
{
    RunStatus status;
    status.state = RunState::Failed;
    status.attempt = 2;
    status.pid = 4711;
    status.pidStartTicks = 99;
    status.bootId = "b-o-o-t";
    status.heartbeatNs = 1'700'000'000'123'456'789;
    status.startedNs = 1'700'000'000'000'000'001;
    status.endedNs = 1'700'000'001'000'000'002;
    status.socket = "/run/user/0/shardscope/1.sock";
    status.step = 7;
    status.steps = 20;
    status.loss = 2.25;
    status.validationLoss = 2.5;
    status.lossTail = {3.0, 2.25};
    status.stepState = StepState::Skipped;
    status.lossScale = 1024;
    status.skippedSteps = 3;
    status.tokensPerSecond = 1234.5;
    status.stepNs = 1000;
    status.peakAllocatedBytes = 1 << 20;
    status.exposedCommunicationShare = 0.125;
    status.checkpointStep = 5;
    status.recordingProblem = "Rank 0: the disk is full";
    status.failure = RunFailure{1, 9, std::nullopt, "last \"lines\"\nof ümlauts"};
    status.ranks = {{.rank = 0, .pid = 5, .state = RunState::Done, .exitCode = 0},
                    {.rank = 1, .pid = 6, .state = RunState::Failed, .signal = 9, .step = 7}};
    return status;
}

TEST(RunStatus, comesBackFromItsText)
{
    const RunStatus status = fullStatus();
    const auto read = statusFromJson(toJson(status));
    ASSERT_TRUE(read);
    EXPECT_EQ(toJson(*read), toJson(status));
    EXPECT_EQ(read->heartbeatNs, 1'700'000'000'123'456'789);
    EXPECT_EQ(read->failure->text, "last \"lines\"\nof ümlauts");
    EXPECT_EQ(read->ranks[1].signal, 9);
    EXPECT_EQ(read->stepState, StepState::Skipped);
    EXPECT_FALSE(read->ranks[1].exitCode);
}

TEST(RunStatus, hasEveryKeyOfTheContractAndNullForNotMeasured)
{
    const auto json = nlohmann::json::parse(toJson(RunStatus{}));
    for (const char *key :
         {"state", "attempt", "pid", "pid_start_ticks", "boot_id", "heartbeat_ns", "socket", "step", "steps", "loss",
          "loss_tail", "tokens_per_second", "peak_allocated_bytes", "exposed_communication_share", "failure"})
        EXPECT_TRUE(json.contains(key)) << key;
    for (const char *key : {"socket", "step", "loss", "tokens_per_second", "peak_allocated_bytes", "failure"})
        EXPECT_TRUE(json[key].is_null()) << key;
    const auto failure = nlohmann::json::parse(toJson(fullStatus()))["failure"];
    for (const char *key : {"rank", "signal", "exit_code", "text"})
        EXPECT_TRUE(failure.contains(key)) << key;
}

TEST(RunStatus, readsTextsOfOtherVersionsAndKeepsALossThatWasNoNumber)
{
    const auto read =
        statusFromJson(R"({"state":"flying","step":"seven","loss_tail":[1,null],"new_key":{},"steps":9})");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->state, RunState::Queued);
    EXPECT_FALSE(read->step);
    EXPECT_EQ(read->steps, 9);
    ASSERT_EQ(read->lossTail.size(), 2u);
    EXPECT_TRUE(std::isnan(read->lossTail[1]));
    RunStatus status;
    status.lossTail = {std::nan("")};
    EXPECT_THAT(toJson(status), HasSubstr("\"loss_tail\":[null]"));
}

TEST(RunStatus, keepsTextThatIsNoUtf8)
{
    RunStatus status;
    status.failure = RunFailure{0, {}, 1, "caf\xe9"};
    EXPECT_THAT(toJson(status), HasSubstr("caf\uFFFD"));
}

TEST(ReadStatus, saysWhichFileIsMissingOrBroken)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    EXPECT_THAT(readStatus(folder).error().text, HasSubstr("no state.json"));
    ASSERT_TRUE(writeFileAtomically(folder.stateFile(), R"({"state": "run)"));
    EXPECT_THAT(readStatus(folder).error().text, HasSubstr("state.json"));
    const RunSummary summary = summarize(folder, realtimeNs());
    EXPECT_THAT(summary.problem, HasSubstr("state.json"));
}

TEST(DescribeEnd, namesRankAndSignal)
{
    EXPECT_EQ(describeEnd({1, 9, {}, {}}), "rank 1 was killed by signal 9 (SIGKILL)");
    EXPECT_EQ(describeEnd({0, {}, 3, {}}), "rank 0 ended with exit code 3");
    EXPECT_EQ(describeEnd({{}, {}, {}, {}}), "the cause is not one rank's own");
}

/// The status of a run whose supervisor is this process.
static RunStatus liveStatus()
{
    RunStatus status;
    status.state = RunState::Running;
    status.pid = ::getpid();
    status.pidStartTicks = processStartTicks(::getpid()).value();
    status.bootId = bootId();
    status.heartbeatNs = realtimeNs();
    return status;
}

TEST(IsLost, followsLockProcessAndHeartbeat)
{
    const RunStatus alive = liveStatus();
    const int64_t now = realtimeNs();
    EXPECT_FALSE(isLost(alive, false, now)) << "its process is there";

    RunStatus reused = alive;
    reused.pidStartTicks -= 1;
    EXPECT_TRUE(isLost(reused, false, now)) << "the pid is another process's";
    EXPECT_FALSE(isLost(reused, true, now)) << "somebody holds the lock";

    RunStatus otherBoot = alive;
    otherBoot.bootId = "another";
    EXPECT_FALSE(isLost(otherBoot, false, now)) << "of another machine, and heard of just now";
    EXPECT_TRUE(isLost(otherBoot, false, now + kHeartbeatPatienceNs + 1));
    EXPECT_TRUE(isLost(otherBoot, false, now - 2 * kHeartbeatPatienceNs)) << "a clock that jumped";

    RunStatus done = reused;
    done.state = RunState::Done;
    EXPECT_FALSE(isLost(done, false, now));
}

TEST(CurrentStatus, showsARunAsLostWhoseSupervisorWasKilled)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto lock = RunLock::acquire(folder);
        if (!lock || !writeStatus(folder, liveStatus()))
            ::_exit(1);
        ::pause();
    }
    while (!std::filesystem::exists(folder.stateFile()))
        ::usleep(1000);
    EXPECT_TRUE(isLocked(folder));
    EXPECT_FALSE(RunLock::acquire(folder));
    EXPECT_EQ(currentStatus(folder, realtimeNs())->state, RunState::Running);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(isLocked(folder));
    EXPECT_EQ(currentStatus(folder, realtimeNs())->state, RunState::Lost);
}

TEST(RunLock, isFreeAgainWhenItsOwnerIsDone)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    EXPECT_FALSE(isLocked(folder));
    {
        const auto lock = RunLock::acquire(folder);
        ASSERT_TRUE(lock);
        EXPECT_TRUE(isLocked(folder));
        const auto second = RunLock::acquire(folder);
        ASSERT_FALSE(second);
        EXPECT_THAT(second.error().text, HasSubstr("going on already"));
    }
    EXPECT_FALSE(isLocked(folder));
}

TEST(ProcessStartTicks, knowsOwnProcessAndNoOther)
{
    EXPECT_GT(processStartTicks(::getpid()).value(), 0);
    EXPECT_FALSE(processStartTicks(0));
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(0);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    EXPECT_FALSE(processStartTicks(child)) << "a zombie is gone";
    ::waitpid(child, nullptr, 0);
}

TEST(ListRuns, hasTheNewestFirstAndLeavesOtherFoldersOut)
{
    const TemporaryFolder temporary;
    std::filesystem::create_directory(temporary.path() / "no run");
    for (int64_t started : {1, 3, 2}) {
        const RunFolder folder(temporary.path() / fmt::format("run {}", started));
        std::filesystem::create_directory(folder.root());
        RunStatus status;
        status.state = RunState::Done;
        status.startedNs = started;
        ASSERT_TRUE(writeStatus(folder, status));
    }
    ASSERT_TRUE(writeUserNotes(RunFolder(temporary.path() / "run 3"), {"the best", "", {}}));
    const auto runs = listRuns(temporary.path(), realtimeNs());
    ASSERT_EQ(runs.size(), 3u);
    EXPECT_EQ(runs[0].shownName(), "the best");
    EXPECT_EQ(runs[1].shownName(), "run 2");
    EXPECT_EQ(runs[2].shownName(), "run 1");
    EXPECT_TRUE(listRuns(temporary.path() / "nowhere", realtimeNs()).empty());
}
