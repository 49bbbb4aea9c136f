// SPDX-License-Identifier: Apache-2.0
#include "core/launch/live_settings.h"

#include "core/base/file.h"
#include "core/config/configuration_file.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::launch;
using shardscope::config::RunConfiguration;
using testing::HasSubstr;

namespace {

Result<RunConfiguration> admitNoHybrid(const ProposedChange &change)
{
    if (change.next.parallel.strategy == Strategy::Hybrid)
        return fail("No hybrid here.");
    return change.next;
}

} // namespace

TEST(LiveSettings, changesStandOnThoseBeforeAndAreNumbered)
{
    LiveSettings settings({}, admitNoHybrid);
    const auto first = settings.set({{"parallel.strategy=none"}, {}});
    ASSERT_TRUE(first && *first);
    EXPECT_EQ((*first)->number, 1);
    EXPECT_EQ((*first)->origin, "user");
    EXPECT_EQ((*first)->text, "parallel.strategy: full → none");
    EXPECT_EQ((*first)->changedJson, R"({"parallel.strategy":{"from":"full","to":"none"}})");
    const auto second = settings.set({{"optimizer.clip_norm=2"}, {"block.*:strategy=grad_op"}});
    ASSERT_TRUE(second && *second);
    EXPECT_EQ((*second)->number, 2);
    RunConfiguration told;
    ASSERT_TRUE(config::applyJson(told, nlohmann::ordered_json::parse((*second)->fullJson), "change"));
    EXPECT_EQ(told.parallel.strategy, Strategy::None);
    EXPECT_EQ(told.optimizer.clipNorm, 2);
    EXPECT_EQ(told.units.size(), 1U);
}

TEST(LiveSettings, whatIsSoAlreadyIsNoChange)
{
    LiveSettings settings({}, admitNoHybrid);
    const auto same = settings.set({{"parallel.strategy=full"}, {}});
    ASSERT_TRUE(same);
    EXPECT_FALSE(*same);
    EXPECT_TRUE(settings.describe()["undo"].is_null());
}

TEST(LiveSettings, isJudgedByWhatIsAcceptedAndMeasured)
{
    const Admit noRoom = [](const ProposedChange &change) -> Result<RunConfiguration> {
        EXPECT_EQ(change.accepted.parallel.strategy, Strategy::Full);
        EXPECT_EQ(change.peakAllocatedBytes, 123);
        if (change.force)
            return change.next;
        return fail("No room.");
    };
    LiveSettings settings({}, noRoom);
    EXPECT_EQ(settings.set({{"parallel.strategy=none"}, {}}, 123).error().text, "No room.");
    EXPECT_TRUE(settings.isForcible({{"parallel.strategy=none"}, {}}, 123));
    EXPECT_FALSE(settings.isForcible({{"parallel.strategy=none"}, {}, true}, 123)) << "it was";
    EXPECT_FALSE(settings.isForcible({{"train.seed=1"}, {}}, 123)) << "whatever the memory";
    EXPECT_EQ(settings.accepted().parallel.strategy, Strategy::Full);
    EXPECT_TRUE(settings.set({{"parallel.strategy=none"}, {}, true}, 123));
    EXPECT_EQ(settings.accepted().parallel.strategy, Strategy::None);
}

TEST(LiveSettings, whatCannotBeLeavesAllAsItWas)
{
    LiveSettings settings({}, admitNoHybrid);
    EXPECT_THAT(settings.set({{"optimizer.clip_norm=2", "parallel.strategy=hybrid"}, {}}).error().text,
                HasSubstr("No hybrid here."));
    EXPECT_THAT(settings.set({{"optimizer.clip_norm=2", "train.seed=1"}, {}}).error().text, HasSubstr("train.seed"));
    EXPECT_EQ(settings.accepted().optimizer.clipNorm, 1);
    EXPECT_THAT(settings.undo().error().text, HasSubstr("nothing to undo"));
}

TEST(LiveSettings, undoGoesBackChangeByChangeAndSaysWhatItRestores)
{
    RunConfiguration start;
    start.units.resize(1);
    LiveSettings settings(start, {});
    ASSERT_TRUE(settings.set({{"parallel.strategy=none"}, {}}));
    ASSERT_TRUE(settings.set({{}, {"block.*:strategy=grad_op"}}));
    EXPECT_EQ(settings.describe()["start_rules"], 1);
    EXPECT_EQ(settings.describe()["undo"]["unit 'block.*': strategy"]["to"], "none");
    const auto first = settings.undo();
    ASSERT_TRUE(first && *first);
    EXPECT_EQ((*first)->origin, "undo");
    EXPECT_EQ((*first)->text, "unit 'block.*': strategy: grad_op → none");
    EXPECT_EQ((*first)->number, 3);
    ASSERT_TRUE(settings.undo());
    EXPECT_EQ(settings.accepted().parallel.strategy, Strategy::Full);
    EXPECT_EQ(settings.accepted().units, start.units);
    EXPECT_FALSE(settings.undo());
}

TEST(LiveSettings, undoIsRefusedWhereWhatWasBeforeCannotBeAnyMore)
{
    bool isFull = false;
    const Admit admit = [&](const ProposedChange &change) -> Result<RunConfiguration> {
        if (isFull && change.next.offload.optimizer == OffloadPlace::Nvme)
            return fail("The drive is full.");
        return change.next;
    };
    RunConfiguration start;
    start.offload.optimizer = OffloadPlace::Nvme;
    LiveSettings settings(start, admit);
    ASSERT_TRUE(settings.set({{"offload.optimizer=none"}, {}}));
    isFull = true;
    EXPECT_EQ(settings.undo().error().text, "The drive is full.");
    EXPECT_EQ(settings.accepted().offload.optimizer, OffloadPlace::None);
    isFull = false;
    ASSERT_TRUE(settings.undo()) << "it is still there to go back to";
    EXPECT_EQ(settings.accepted().offload.optimizer, OffloadPlace::Nvme);
}

TEST(LiveSettings, aResumedRunTakesWhatWasInForceLast)
{
    const test::TemporaryFolder temporary;
    const run::RunFolder folder(temporary.path() / "run");
    std::filesystem::create_directories(folder.root());
    ASSERT_TRUE(folder.createAttempt(1));
    ASSERT_TRUE(writeFileAtomically(folder.configFile(1), R"({"train": {"seed": 5}, "optimizer": {"clip_norm": 1}})"));
    RunConfiguration configuration;
    ASSERT_TRUE(applyInForce(configuration, folder));
    EXPECT_EQ(configuration.train.seed, 5);
    EXPECT_EQ(configuration.optimizer.clipNorm, 1);
    ASSERT_TRUE(writeFileAtomically(folder.inForceFile(1), R"({"optimizer": {"clip_norm": 3}})"));
    ASSERT_TRUE(applyInForce(configuration, folder));
    EXPECT_EQ(configuration.optimizer.clipNorm, 3);
    ASSERT_TRUE(folder.createAttempt(2));
    ASSERT_TRUE(writeFileAtomically(folder.configFile(2), R"({"train": {"seed": 6}})"));
    ASSERT_TRUE(applyInForce(configuration, folder));
    EXPECT_EQ(configuration.train.seed, 5) << "attempt 2 has done no step";
    ASSERT_TRUE(writeFileAtomically(folder.inForceFile(2), R"({"train": {"seed": 7}})"));
    ASSERT_TRUE(applyInForce(configuration, folder));
    EXPECT_EQ(configuration.train.seed, 7);
    ASSERT_TRUE(writeFileAtomically(folder.inForceFile(2), "{"));
    EXPECT_THAT(applyInForce(configuration, folder).error().text, HasSubstr("in-force.json"));
}
