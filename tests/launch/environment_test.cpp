// SPDX-License-Identifier: Apache-2.0
#include "core/launch/environment.h"
#include "core/launch/launch_plan.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::launch;

static LaunchPlan planWith(Environment environment)
{
    LaunchPlan plan{.folder = run::RunFolder("/runs/a"), .attempt = 2, .ranks = 2, .cores = 8};
    plan.environment = std::move(environment);
    return plan;
}

TEST(RankEnvironment, forgetsAnotherJobAndKeepsTheRest)
{
    const LaunchPlan plan = planWith({{"RANK", "3"},
                                      {"WORLD_SIZE", "16"},
                                      {"LOCAL_RANK", "3"},
                                      {"MASTER_ADDR", "10.0.0.1"},
                                      {"MASTER_PORT", "29500"},
                                      {"GROUP_RANK", "1"},
                                      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                      {"TORCHELASTIC_RESTART_COUNT", "2"},
                                      {"SHARDSCOPE_STORE_FD", "9"},
                                      {"SHARDSCOPE_RESUME", "/elsewhere"},
                                      {"PATH", "/bin"},
                                      {"NCCL_NVLS_ENABLE", "0"},
                                      {"RANKING", "kept"}});
    const Environment environment = rankEnvironment(plan, 1, 40000, {.control = 7});
    EXPECT_EQ(environment.at("RANK"), "1");
    EXPECT_EQ(environment.at("LOCAL_RANK"), "1");
    EXPECT_EQ(environment.at("WORLD_SIZE"), "2");
    EXPECT_EQ(environment.at("MASTER_ADDR"), "127.0.0.1");
    EXPECT_EQ(environment.at("MASTER_PORT"), "40000");
    EXPECT_EQ(environment.at("SHARDSCOPE_CONTROL_FD"), "7");
    EXPECT_EQ(environment.at("SHARDSCOPE_ATTEMPT"), "2");
    for (const char *gone : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "GROUP_RANK",
                             "SHARDSCOPE_STORE_FD", "SHARDSCOPE_RESUME", "NCCL_HOSTID"})
        EXPECT_FALSE(environment.contains(gone)) << gone;
    for (const char *kept : {"PATH", "NCCL_NVLS_ENABLE", "RANKING"})
        EXPECT_TRUE(environment.contains(kept)) << kept;
}

TEST(RankEnvironment, dividesTheCoresUnlessTheUserDid)
{
    EXPECT_EQ(rankEnvironment(planWith({}), 0, 1, {}).at("OMP_NUM_THREADS"), "4");
    EXPECT_EQ(rankEnvironment(planWith({{"OMP_NUM_THREADS", "1"}}), 0, 1, {}).at("OMP_NUM_THREADS"), "1");
    LaunchPlan crowded = planWith({});
    crowded.cores = 1;
    EXPECT_EQ(rankEnvironment(crowded, 0, 1, {}).at("OMP_NUM_THREADS"), "1");
}

TEST(RankEnvironment, makesEachRankAHostOfItsOwnOnASharedDevice)
{
    LaunchPlan plan = planWith({{"NCCL_SOCKET_IFNAME", "eth0"}});
    plan.shareDevice = true;
    const Environment first = rankEnvironment(plan, 0, 1, {});
    const Environment second = rankEnvironment(plan, 1, 1, {});
    EXPECT_NE(first.at("NCCL_HOSTID"), second.at("NCCL_HOSTID"));
    EXPECT_EQ(first.at("NCCL_SOCKET_IFNAME"), "lo");
}

TEST(RankEnvironment, saysWhereAnAttemptGoesOn)
{
    LaunchPlan plan = planWith({});
    plan.resumeFrom = files::CheckpointInfo{200, 1, plan.folder.checkpointsFolder() / "step-000200"};
    EXPECT_EQ(rankEnvironment(plan, 0, 1, {.store = 5}).at("SHARDSCOPE_RESUME"), "/runs/a/checkpoints/step-000200");
    EXPECT_EQ(rankEnvironment(plan, 0, 1, {.store = 5}).at("SHARDSCOPE_STORE_FD"), "5");
}

TEST(FindWorker, saysWhatIsWrongWithTheVariable)
{
    ::setenv("SHARDSCOPE_WORKER", "/proc/version", 1);
    const auto worker = findWorker();
    ASSERT_FALSE(worker);
    EXPECT_THAT(worker.error().text, testing::HasSubstr("SHARDSCOPE_WORKER names /proc/version"));
    ::setenv("SHARDSCOPE_WORKER", "/bin/sh", 1);
    EXPECT_EQ(findWorker().value(), "/bin/sh");
    ::unsetenv("SHARDSCOPE_WORKER");
}
