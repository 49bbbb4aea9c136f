// SPDX-License-Identifier: Apache-2.0
// Whether a change of a running job fits in its memory. (The ledger itself is compared with an engine in
// tests/model/ledger_test.cpp.)
#include "core/plan/room_check.h"

#include "core/config/registry.h"
#include "core/plan/offload_files.h"
#include "core/shapes/activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope {

using config::RunConfiguration;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

static constexpr int64_t kGib = int64_t{1} << 30;

class RoomCheck : public testing::Test
{
protected:
    RoomCheck()
    {
        now.precision.compute = Precision::Bf16;
        now.parallel.ranks = 4;
        now.train.microBatch = 2;
        now.train.accumulation = 1;
        now.train.sequenceLength = 1024;
        modelPlan = shapes::planOf(shapes::unitsOf(shape), now, now.parallel.ranks).value();
    }
    RunConfiguration with(const std::string &key, const std::string &value) const
    {
        RunConfiguration next = now;
        EXPECT_TRUE(config::setKey(next, key, value));
        return next;
    }
    int64_t bytesOf(const RunConfiguration &configuration) const
    {
        return plan::forecastOf(shapes::replanned(modelPlan, configuration).value(), shape, configuration).total();
    }
    std::string refusal(const RunConfiguration &next, int64_t freeBytes) const
    {
        const plan::Room room{.peakBytes = bytesOf(now) + kGib, .freeBytes = freeBytes, .device = device};
        const auto checked = plan::checkRoom(modelPlan, shape, now, next, room);
        return checked ? "" : checked.error().text;
    }
    const shapes::ModelShape shape = shapes::presetShape("1b3").value();
    RunConfiguration now;
    shapes::ModelPlan modelPlan;
    DeviceKind device = DeviceKind::Cuda;
};

TEST_F(RoomCheck, refusesJustWhatIsMoreThanThereIs)
{
    const RunConfiguration next = with("parallel.strategy", "none");
    const int64_t more = bytesOf(next) - bytesOf(now);
    EXPECT_GT(more, 10 * kGib);
    EXPECT_EQ(refusal(next, more), "");
    EXPECT_THAT(refusal(next, more - 1), AllOf(HasSubstr("predicted peak"), HasSubstr("temporary"), HasSubstr("free")));
    EXPECT_EQ(refusal(now, 0), "") << "what changes nothing";
    EXPECT_EQ(refusal(with("memory.recompute", "block"), 0), "") << "what needs less";
}

TEST_F(RoomCheck, namesKeysThatWouldMakeItFit)
{
    now.memory.recompute = Recompute::Block;
    const RunConfiguration next = with("memory.recompute", "off");
    const int64_t tooLittle = bytesOf(next) - bytesOf(now) - 1;
    ASSERT_GT(tooLittle, 0);
    EXPECT_THAT(refusal(next, tooLittle),
                AllOf(HasSubstr("memory.recompute=block ("), HasSubstr("offload.optimizer=cpu ("),
                      Not(HasSubstr("parallel.strategy=grad_op ("))));
    device = DeviceKind::Cpu;
    EXPECT_THAT(refusal(next, tooLittle), AllOf(HasSubstr("offload.optimizer=nvme ("), Not(HasSubstr("=cpu"))));
    EXPECT_THAT(refusal(with("parallel.strategy", "none"), 0), HasSubstr("parallel.strategy=full ("));
}

TEST_F(RoomCheck, knowsTheHostsMemory)
{
    const RunConfiguration next = with("offload.optimizer", "cpu");
    plan::Room room{.peakBytes = bytesOf(now), .freeBytes = 0, .device = device};
    EXPECT_TRUE(plan::checkRoom(modelPlan, shape, now, next, room)) << "the host's is not known";
    room.freeHostBytes = kGib;
    const auto checked = plan::checkRoom(modelPlan, shape, now, next, room);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().text, HasSubstr("of the host's memory"));
}

TEST_F(RoomCheck, filesOfAllRanksAreWhatTheLedgerPutsThere)
{
    EXPECT_EQ(plan::moreInFiles(modelPlan, nullptr, now), 0);
    RunConfiguration next = with("offload.optimizer", "nvme");
    const auto ofLedger = [&] {
        const auto replanned = shapes::replanned(modelPlan, next).value();
        return 4 * (plan::ledgerOf(replanned, plan::LedgerOptions::from(next)).fileBytes + (int64_t{16} << 20));
    };
    const int64_t optimizer = plan::moreInFiles(modelPlan, nullptr, next);
    const int64_t parameters = shapes::parameterCount(shape);
    EXPECT_NEAR(static_cast<double>(optimizer), 8.0 * static_cast<double>(parameters) + (4 << 24), 1e7);
    const double blocks = 4.0 * 4 * 4096 * static_cast<double>(modelPlan.units.size()); // what whole blocks add at most
    EXPECT_NEAR(static_cast<double>(optimizer), static_cast<double>(ofLedger()), blocks);
    EXPECT_EQ(plan::moreInFiles(modelPlan, &now, next), optimizer);
    next.offload.parameters = OffloadPlace::Nvme;
    EXPECT_NEAR(static_cast<double>(plan::moreInFiles(modelPlan, nullptr, next)), static_cast<double>(ofLedger()),
                blocks);
    next = now;
    config::UnitRule &rule = next.units.emplace_back();
    rule.match = "block.3.*";
    rule.settings.push_back({"offload.optimizer", "nvme"});
    const int64_t block = plan::moreInFiles(modelPlan, &now, next);
    EXPECT_GT(block, 4 << 24);
    EXPECT_LT(block, optimizer / 10);
}

TEST_F(RoomCheck, filesHoldAlreadyWhatStaysThere)
{
    now.offload.optimizer = OffloadPlace::Nvme;
    EXPECT_EQ(plan::moreInFiles(modelPlan, &now, now), 0);
    EXPECT_EQ(plan::moreInFiles(modelPlan, &now, with("memory.recompute", "block")), 0);
    EXPECT_EQ(plan::moreInFiles(modelPlan, &now, with("offload.optimizer", "none")), 0);
    const RunConfiguration both = with("offload.parameters", "nvme");
    EXPECT_LT(plan::moreInFiles(modelPlan, &now, both), plan::moreInFiles(modelPlan, nullptr, both) / 2);
    // What changes hands is there twice for a moment, state by state, though less lies there in the end.
    const RunConfiguration whole = with("parallel.strategy", "none");
    const int64_t sharded = plan::moreInFiles(modelPlan, nullptr, now);
    const int64_t moving = plan::moreInFiles(modelPlan, &whole, now);
    EXPECT_GT(moving, 4 << 24);
    EXPECT_LT(moving, sharded / 4);
}

TEST_F(RoomCheck, aDriveNeedsRoomAndAFolderThatCanBeUsed)
{
    EXPECT_TRUE(plan::checkDrive({"/fast", "", {}}, kGib, 4)) << "not known";
    EXPECT_TRUE(plan::checkDrive({"/fast", "", kGib + 1}, kGib, 4));
    const auto full = plan::checkDrive({"/fast", "", kGib}, kGib, 4);
    ASSERT_FALSE(full);
    EXPECT_THAT(full.error().text, AllOf(HasSubstr("/fast"), HasSubstr("1.00 GiB are needed for 4 ranks"),
                                         HasSubstr("1.00 GiB are free")));
    const auto unusable = plan::checkDrive({"/fast", "Read-only file system.", kGib}, 1, 4);
    ASSERT_FALSE(unusable);
    EXPECT_THAT(unusable.error().text, AllOf(HasSubstr("/fast"), HasSubstr("Read-only file system")));
}

TEST_F(RoomCheck, aForecastIsStatesActivationsAndWhatIsTemporary)
{
    const int64_t parameters = shapes::parameterCount(shape);
    const auto forecast = plan::forecastOf(modelPlan, shape, now);
    EXPECT_NEAR(static_cast<double>(forecast.states.parameters), static_cast<double>(parameters), 1e6); // 4P / 4
    EXPECT_NEAR(static_cast<double>(forecast.states.optimizer), 2.0 * static_cast<double>(parameters), 1e6);
    const auto ofToken = shapes::blockActivationsPerToken(shape, Precision::Bf16, Recompute::Off);
    EXPECT_EQ(forecast.activations, shape.layers * 2 * 1024 * ofToken.bytes());
    EXPECT_GT(forecast.temporary, 2 * 2 * 1024 * shape.ffnHidden); // a matrix of that width, and more
    EXPECT_LT(forecast.temporary, forecast.activations);
    EXPECT_EQ(forecast.other, 32 << 20) << "cuBLAS's, on a GPU";
    EXPECT_EQ(forecast.total(), forecast.states.total() + forecast.activations + forecast.temporary + forecast.other);
    EXPECT_EQ(plan::forecastOf(modelPlan, shape, with("parallel.device", "cpu")).other, 0);
    const RunConfiguration recomputed = with("memory.recompute", "block");
    const auto less = plan::forecastOf(shapes::replanned(modelPlan, recomputed).value(), shape, recomputed);
    EXPECT_LT(less.activations, forecast.activations / 5);
}

TEST_F(RoomCheck, warnsBeforeARunThatNeedsMoreThanThereIs)
{
    const auto forecast = plan::forecastOf(modelPlan, shape, now);
    EXPECT_EQ(plan::warningOfNeed(forecast, forecast.total()), "");
    EXPECT_THAT(plan::warningOfNeed(forecast, forecast.total() - 1), HasSubstr("predicted to need more than"));
}

} // namespace shardscope
