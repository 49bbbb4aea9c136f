// SPDX-License-Identifier: Apache-2.0
#include "core/config/live_change.h"

#include "core/config/configuration_file.h"
#include "core/config/registry.h"
#include "core/config/unit_rules.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::config;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

RunConfiguration inForce()
{
    RunConfiguration c;
    c.optimizer.learningRate = 1e-3;
    c.optimizer.minLearningRate = 1e-4;
    c.parallel.shardGroup = 1;
    c.units = {*ruleFromText("*:kind=norm,strategy=grad_op")};
    return c;
}

RunConfiguration changed(const RunConfiguration &c, const LiveRequest &request)
{
    const auto changed = withChanges(c, request, 1);
    EXPECT_TRUE(changed) << changed.error().text;
    return changed.value_or(c);
}

std::string liveRefusal(const LiveRequest &request)
{
    const auto changed = withChanges(inForce(), request, 1);
    return changed ? "" : changed.error().text;
}

} // namespace

TEST(LiveChange, setsLiveKeysAndSaysFromWhatToWhat)
{
    const RunConfiguration c = inForce();
    const RunConfiguration now = changed(c, {{"parallel.strategy=none", "optimizer.clip_norm=0.5"}, {}});
    EXPECT_EQ(now.parallel.strategy, Strategy::None);
    const auto all = differences(c, now);
    EXPECT_THAT(all, ElementsAre(Difference{"optimizer.clip_norm", "1", "0.5"},
                                 Difference{"parallel.strategy", "full", "none"}));
    EXPECT_EQ(textOf(all), "optimizer.clip_norm: 1 → 0.5, parallel.strategy: full → none");
    EXPECT_EQ(toJson(all).dump(), R"({"optimizer.clip_norm":{"from":"1","to":"0.5"},)"
                                  R"("parallel.strategy":{"from":"full","to":"none"}})");
    EXPECT_EQ(differencesIn(toJson(all).dump()), all);
    for (const char *none : {"", "[1]", "{\"a\": 1}"})
        EXPECT_THAT(differencesIn(none), IsEmpty()) << none;
    EXPECT_THAT(differences(c, changed(c, {{"parallel.strategy=full"}, {}})), IsEmpty());
}

TEST(LiveChange, theFinalRateGoesAlongWithTheRate)
{
    const RunConfiguration now = changed(inForce(), {{"optimizer.learning_rate=5e-4"}, {}});
    EXPECT_EQ(now.optimizer.learningRate, 5e-4);
    EXPECT_DOUBLE_EQ(now.optimizer.minLearningRate, 5e-5);
    RunConfiguration constant = inForce();
    constant.optimizer.minLearningRate = 0;
    EXPECT_EQ(changed(constant, {{"optimizer.learning_rate=1"}, {}}).optimizer.minLearningRate, 0);
}

TEST(LiveChange, refusesAllThatCannotBeSetAndSaysWhatToDo)
{
    EXPECT_EQ(liveRefusal({{"train.micro_batch=8", "parallel.stratgy=none", "optimizer.clip_norm=-1", "x"},
                           {"a:wrap=true", "a:strategy=every"}}),
              "train.micro_batch is fixed while a run goes on. Stop the run and go on with it by: run --resume RUN "
              "--set train.micro_batch=8\n"
              "Unknown key parallel.stratgy. Did you mean parallel.strategy?\n"
              "optimizer.clip_norm can't be -1: it takes a number from 0 to 1000000000.\n"
              "\"x\" is no assignment. Write KEY=VALUE, as in train.steps=100.\n"
              "wrap of a [[unit]] is fixed while a run goes on: buckets are made when it starts. Stop the run and go "
              "on with it by: run --resume RUN --unit 'a:wrap=true'\n"
              "--unit 'a:strategy=every': strategy can't be \"every\": it takes one of full, grad_op, none, hybrid.");
    EXPECT_THAT(liveRefusal({{}, {"a:kind=norm"}}), HasSubstr("sets nothing"));
}

TEST(LiveChange, rulesOfTheStartStayAndLaterOnesReplaceTheirOwnKind)
{
    const RunConfiguration c = inForce();
    RunConfiguration now = changed(c, {{}, {"block.*:strategy=none,prefetch=off", "*:kind=norm,strategy=full"}});
    EXPECT_EQ(now.units.size(), 3U);
    EXPECT_EQ(now.units[0], c.units[0]);
    EXPECT_THAT(differences(c, now), ElementsAre(Difference{"unit '*:kind=norm': strategy", "grad_op", "full"},
                                                 Difference{"unit 'block.*': prefetch", "pre", "off"},
                                                 Difference{"unit 'block.*': strategy", "full", "none"}));

    const RunConfiguration then = changed(now, {{}, {"block.*:strategy=full"}});
    ASSERT_EQ(then.units.size(), 4U);
    EXPECT_EQ(textOf(then.units[1]), "block.*:prefetch=off");
    EXPECT_EQ(textOf(then.units[3]), "block.*:strategy=full");
    now = changed(then, {{}, {"block.*:prefetch=pre,strategy=grad_op"}});
    EXPECT_EQ(now.units.size(), 3U); // nothing is left of what it was
    EXPECT_THAT(differences(then, c), testing::Contains(Difference{"unit 'block.*': prefetch", "off", "pre"}));
}

TEST(LiveChange, anotherOrderOfTheSameRulesIsAChange)
{
    const RunConfiguration c = changed(inForce(), {{}, {"block.*:strategy=none", "block.1.*:strategy=full"}});
    const RunConfiguration now = changed(c, {{}, {"block.*:strategy=none"}});
    EXPECT_THAT(
        differences(c, now),
        ElementsAre(Difference{"unit", "*:kind=norm,strategy=grad_op; block.*:strategy=none; block.1.*:strategy=full",
                               "*:kind=norm,strategy=grad_op; block.1.*:strategy=full; block.*:strategy=none"}));
}

TEST(LiveChange, noRulesAreCalledNone)
{
    EXPECT_EQ(textOf(std::vector<Difference>{{"unit", "", "block.0.*:recompute=off"}}),
              "unit: none → block.0.*:recompute=off");
}
