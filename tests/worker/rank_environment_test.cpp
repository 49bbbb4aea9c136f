// SPDX-License-Identifier: Apache-2.0
#include "app/worker/rank_environment.h"

#include <gmock/gmock.h>
#include <map>

using namespace shardscope;
using shardscope::worker::RankEnvironment;
using ::testing::HasSubstr;

namespace {

Result<RankEnvironment> read(const std::map<std::string, std::string> &variables)
{
    return worker::readRankEnvironment([&](const char *name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
}

TEST(RankEnvironmentTest, NothingMeansOneRankAlone)
{
    const RankEnvironment place = read({}).value();
    EXPECT_EQ(place.rank, 0);
    EXPECT_EQ(place.worldSize, 1);
    EXPECT_FALSE(place.masterPort);
    EXPECT_FALSE(place.supervised);
}

TEST(RankEnvironmentTest, WhatTorchrunSets)
{
    const RankEnvironment place = read({{"RANK", "5"},
                                        {"WORLD_SIZE", "8"},
                                        {"LOCAL_RANK", "1"},
                                        {"LOCAL_WORLD_SIZE", "4"},
                                        {"MASTER_ADDR", "node0"},
                                        {"MASTER_PORT", "29500"},
                                        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                        {"TORCHELASTIC_RUN_ID", "abc"},
                                        {"TORCHELASTIC_RESTART_COUNT", "2"}})
                                      .value();
    EXPECT_EQ(place.rank, 5);
    EXPECT_EQ(place.localRank, 1);
    EXPECT_EQ(place.localWorldSize, 4);
    EXPECT_EQ(place.masterAddress, "node0");
    EXPECT_EQ(place.masterPort, 29500);
    EXPECT_TRUE(place.agentStore);
    EXPECT_EQ(place.restarts, 2);
    EXPECT_EQ(place.storePrefix, "abc/2");
}

TEST(RankEnvironmentTest, WithoutLocalValuesAllRanksAreHere)
{
    const RankEnvironment place = read({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_PORT", "1234"}}).value();
    EXPECT_EQ(place.localRank, 1);
    EXPECT_EQ(place.localWorldSize, 3);
}

TEST(RankEnvironmentTest, WhatASupervisorSets)
{
    const RankEnvironment place = read({{"RANK", "0"},
                                        {"WORLD_SIZE", "2"},
                                        {"MASTER_PORT", "1234"},
                                        {"SHARDSCOPE_CONTROL_FD", "5"},
                                        {"SHARDSCOPE_STORE_FD", "6"},
                                        {"SHARDSCOPE_ATTEMPT", "3"},
                                        {"SHARDSCOPE_RESUME", "/runs/a/checkpoints/step-000200"}})
                                      .value();
    EXPECT_TRUE(place.supervised);
    EXPECT_EQ(place.storeFd, 6);
    EXPECT_EQ(place.attempt, 3);
    EXPECT_EQ(place.resumeFrom, "/runs/a/checkpoints/step-000200");
}

TEST(RankEnvironmentTest, MistakesAreNamed)
{
    const auto error = [](const std::map<std::string, std::string> &variables) {
        const auto place = read(variables);
        return place ? std::string() : place.error().text;
    };
    EXPECT_THAT(error({{"RANK", "1"}}), HasSubstr("RANK but not WORLD_SIZE"));
    EXPECT_THAT(error({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE but not RANK"));
    EXPECT_THAT(error({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
                HasSubstr("ranks count from 0 to 1"));
    EXPECT_THAT(error({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("no MASTER_PORT"));
    EXPECT_THAT(error({{"RANK", "0x1"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=0x1"));
    EXPECT_THAT(error({{"MASTER_PORT", "70000"}}), HasSubstr("from 1 to 65535"));
    EXPECT_THAT(
        error(
            {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
        HasSubstr("local ranks count from 0 to 1"));
}

} // namespace
