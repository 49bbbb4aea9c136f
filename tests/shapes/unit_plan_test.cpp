// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/unit_plan.h"

#include <gmock/gmock.h>

namespace shardscope {

using namespace shapes;
using config::RunConfiguration;
using config::UnitRule;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

static std::vector<UnitShape> tinyUnits()
{
    return unitsOf(presetShape("tiny").value());
}

static std::vector<std::string> bucketNames(const UnitPlan &unit)
{
    std::vector<std::string> names;
    for (const BucketPlan &bucket : unit.buckets)
        names.push_back(bucket.name);
    return names;
}

TEST(UnitPlan, withoutRulesAUnitIsOneBucket)
{
    RunConfiguration configuration;
    const ModelPlan plan = planOf(tinyUnits(), configuration, 4).value();
    ASSERT_EQ(plan.units.size(), 6U);
    for (const UnitPlan &unit : plan.units) {
        EXPECT_THAT(bucketNames(unit), ElementsAre(unit.shape.name));
        EXPECT_EQ(unit.buckets[0].parameters.size(), unit.shape.parameters.size());
        EXPECT_EQ(unit.buckets[0].settings.shardGroup, 4);
        EXPECT_EQ(unit.buckets[0].settings.reshardGroup, 4);
    }
}

TEST(UnitPlan, groupsFollowTheStrategy)
{
    RunConfiguration configuration;
    const auto settings = [&](Strategy strategy, int64_t shard, int64_t reshard) {
        configuration.parallel.strategy = strategy;
        configuration.parallel.shardGroup = shard;
        configuration.parallel.reshardGroup = reshard;
        return planOf(tinyUnits(), configuration, 8).value().units[1].buckets[0].settings;
    };
    EXPECT_EQ(settings(Strategy::None, 0, 0).shardGroup, 1);
    EXPECT_EQ(settings(Strategy::Hybrid, 2, 0).shardGroup, 2);
    EXPECT_EQ(settings(Strategy::Hybrid, 0, 0).shardGroup, 4);
    EXPECT_EQ(settings(Strategy::Full, 2, 4).shardGroup, 8);
    EXPECT_EQ(settings(Strategy::Full, 2, 4).reshardGroup, 4);
    EXPECT_EQ(settings(Strategy::GradOp, 0, 4).reshardGroup, 8) << "nothing is resharded after forward";
}

TEST(UnitPlan, rulesSetPartsOfAUnitApart)
{
    RunConfiguration configuration;
    configuration.units = {
        {.match = "embedding.*", .settings = {{"parallel.strategy", "none"}}},
        {.kind = ParameterKind::Norm, .settings = {{"parallel.strategy", "grad_op"}}},
        {.match = "block.2.*", .settings = {{"parallel.strategy", "none"}}},
    };
    const ModelPlan plan = planOf(tinyUnits(), configuration, 2).value();
    EXPECT_THAT(bucketNames(plan.units[0]), ElementsAre("embedding"));
    EXPECT_EQ(plan.units[0].buckets[0].settings.strategy, Strategy::None);
    EXPECT_THAT(bucketNames(plan.units[1]), ElementsAre("block.0", "block.0/norm"));
    EXPECT_THAT(plan.units[1].buckets[0].parameters, ElementsAre(1, 2, 3, 4, 6, 7, 8));
    EXPECT_THAT(plan.units[1].buckets[1].parameters, ElementsAre(0, 5));
    EXPECT_EQ(plan.units[1].buckets[0].settings.strategy, Strategy::Full);
    EXPECT_EQ(plan.units[1].buckets[1].settings.strategy, Strategy::GradOp);
    for (const BucketPlan &bucket : plan.units[3].buckets)
        EXPECT_EQ(bucket.settings.strategy, Strategy::None) << "the last match wins";
}

TEST(UnitPlan, frozenIgnoredAndWrapped)
{
    RunConfiguration configuration;
    configuration.units = {
        {.match = "block.1.*", .frozen = true},
        {.match = "block.*.attention.q.weight", .ignore = true},
        {.minParameters = 40'000, .wrap = true},
    };
    const ModelPlan plan = planOf(tinyUnits(), configuration, 2).value();
    for (const BucketPlan &bucket : plan.units[2].buckets)
        EXPECT_TRUE(bucket.frozen);
    EXPECT_THAT(bucketNames(plan.units[1]), ElementsAre("block.0", "block.0/attention.q", "block.0/apart"));
    EXPECT_EQ(plan.units[1].buckets[1].settings.strategy, Strategy::None);
    EXPECT_TRUE(plan.units[1].buckets[2].wrapped);
    EXPECT_THAT(plan.units[1].buckets[2].parameters, ElementsAre(6, 7, 8)) << "gate, up and down have 49,152 elements";
    EXPECT_THAT(bucketNames(plan.units[0]), ElementsAre("embedding/apart"));
    EXPECT_FALSE(plan.units[0].buckets[0].wrapped) << "nothing of it is gathered before it is used";
}

TEST(UnitPlan, recomputeIsOfBlocks)
{
    RunConfiguration configuration;
    configuration.memory.recompute = Recompute::Block;
    configuration.memory.recomputeEvery = 2;
    const ModelPlan plan = planOf(tinyUnits(), configuration, 1).value();
    std::vector<Recompute> all;
    for (const UnitPlan &unit : plan.units)
        all.push_back(unit.settings.recompute);
    EXPECT_THAT(all, ElementsAre(Recompute::Off, Recompute::Block, Recompute::Off, Recompute::Block, Recompute::Off,
                                 Recompute::Off));
}

TEST(UnitPlan, saysWhatIsWrongWithARule)
{
    RunConfiguration configuration;
    configuration.units = {{.match = "blok.*"}};
    EXPECT_THAT(planOf(tinyUnits(), configuration, 2).error().text, HasSubstr("\"blok.*\""));
    configuration.units = {{.match = "*", .frozen = true}};
    EXPECT_THAT(planOf(tinyUnits(), configuration, 2).error().text, HasSubstr("nothing would be trained"));
    for (const char *key : {"memory.recompute", "memory.activation_offload"}) {
        const UnitRule::Setting setting{key, key == std::string_view("memory.recompute") ? "block" : "true"};
        for (const char *match : {"embedding.*", "head.*"}) {
            configuration.units = {{.match = match, .settings = {setting}}};
            EXPECT_THAT(planOf(tinyUnits(), configuration, 2).error().text,
                        AllOf(HasSubstr(fmt::format("{} is of blocks", key)), HasSubstr(match)));
        }
        configuration.units = {{.match = "*", .settings = {setting}}};
        EXPECT_TRUE(planOf(tinyUnits(), configuration, 2)) << "blocks are among them";
    }
    configuration.parallel.strategy = Strategy::Hybrid;
    configuration.parallel.shardGroup = 3;
    configuration.units.clear();
    EXPECT_THAT(planOf(tinyUnits(), configuration, 4).error().text, HasSubstr("3 doesn't divide the 4 ranks"));
}

TEST(UnitPlan, aChangeKeepsBucketsAndTakesNewSettings)
{
    RunConfiguration configuration;
    configuration.units = {{.kind = ParameterKind::Norm, .settings = {{"parallel.strategy", "none"}}}};
    const ModelPlan plan = planOf(tinyUnits(), configuration, 2).value();
    configuration.parallel.strategy = Strategy::GradOp;
    configuration.units.push_back({.match = "block.0.*", .settings = {{"parallel.strategy", "none"}}});
    const ModelPlan changed = replanned(plan, configuration).value();
    ASSERT_EQ(changed.units.size(), plan.units.size());
    EXPECT_THAT(bucketNames(changed.units[1]), ElementsAre("block.0", "block.0/norm"));
    EXPECT_EQ(changed.units[1].buckets[0].settings.strategy, Strategy::None);
    EXPECT_EQ(changed.units[2].buckets[0].settings.strategy, Strategy::GradOp);
    configuration.units.back().match = "block.0.attention.q.weight";
    EXPECT_THAT(replanned(plan, configuration).error().text, HasSubstr("a part of block.0"));
}

} // namespace shardscope
