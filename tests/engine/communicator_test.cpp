// SPDX-License-Identifier: Apache-2.0
#include "core/engine/cast.h"
#include "core/engine/communication_lane.h"
#include "core/engine/communicator.h"
#include "core/engine/step_scalars.h"
#include "tests/model/ranks.h"

#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <torch/torch.h>

namespace shardscope {

/// Keeps what it is told, from any thread.
class Witness : public observe::Observer
{
public:
    struct Call
    {
        observe::CollectiveInfo info;
        bool enqueued = false, started = false, ended = false;
    };
    int32_t onCommunicator(const observe::CommunicatorInfo &info) override
    {
        const std::lock_guard lock(m_mutex);
        uids.insert(info.uid);
        return info.rankInIt;
    }
    int64_t beginCollective(const observe::CollectiveInfo &info) override
    {
        const std::lock_guard lock(m_mutex);
        calls.push_back({info});
        return static_cast<int64_t>(calls.size()) - 1;
    }
    void beginDeviceWork(Phase phase, observe::UnitIndex unit) override
    {
        const std::lock_guard lock(m_mutex);
        work.emplace_back(phase, unit);
        ++open;
    }
    void endDeviceWork() override
    {
        const std::lock_guard lock(m_mutex);
        --open;
    }
    void collectiveEnqueued(int64_t call) override { mark(call, &Call::enqueued); }
    void collectiveStarted(int64_t call) override { mark(call, &Call::started); }
    void collectiveEnded(int64_t call) override { mark(call, &Call::ended); }

    std::vector<Call> calls;
    std::set<std::string> uids;
    std::vector<std::pair<Phase, observe::UnitIndex>> work; ///< what the device was given, for whom
    int open = 0;

private:
    void mark(int64_t call, bool Call::*what)
    {
        const std::lock_guard lock(m_mutex);
        calls[static_cast<size_t>(call)].*what = true;
    }
    std::mutex m_mutex;
};

static void exerciseCollectives(engine::Communicator &communicator)
{
    const int n = communicator.worldSize();
    const int rank = communicator.rank();
    const double ranksSum = n * (n + 1) / 2.0;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor gathered = at::empty({n * 256}, type);
        communicator.allGather(gathered, torch::full({256}, rank + 1.0F), {}).wait();
        for (int i = 0; i < n; ++i)
            EXPECT_TRUE(at::equal(gathered.narrow(0, i * 256, 256), torch::full({256}, i + 1.0F).to(type)));
    }
    const at::Tensor slice = torch::full({256}, 5.0F);
    const at::Tensor ramp = torch::arange(n * 256).to(at::kFloat);
    communicator.reduceScatter(ramp * (rank + 1), slice, false, {}).wait();
    EXPECT_TRUE(at::equal(slice, ramp.narrow(0, rank * 256, 256) * ranksSum));
    communicator.reduceScatter(ramp * (rank + 1), slice, true, {}).wait();
    EXPECT_TRUE(at::equal(slice, ramp.narrow(0, rank * 256, 256) * (2 * ranksSum)));
    for (const int64_t elements : {int64_t{3}, int64_t{4096} * n}) {
        const at::Tensor sum = torch::full({elements}, rank + 1.0);
        communicator.allReduce(sum, {}).wait();
        EXPECT_TRUE(at::equal(sum, torch::full({elements}, ranksSum)));
    }
    const at::Tensor told = torch::full({7}, static_cast<float>(rank));
    communicator.broadcast(told, n - 1, {}).wait();
    EXPECT_TRUE(at::equal(told, torch::full({7}, n - 1.0F)));
}

TEST(Communicator, collectivesGiveTheRightNumbers)
{
    for (const int worldSize : {1, 2, 3, 4}) {
        SCOPED_TRACE(worldSize);
        observe::Observer observer;
        if (worldSize > 1)
            test::runRanks(worldSize, observer, exerciseCollectives);
    }
}

/// One rank reports no collectives, but what it copies in their place is somebody's.
TEST(Communicator, oneRanksCopiesAreOfTheirUnit)
{
    Witness witness;
    const auto communicator = engine::Communicator::create({}, witness).value();
    const at::Tensor slice = torch::full({4}, 3.0F);
    const at::Tensor gathered = at::empty({4}, at::kBFloat16);
    communicator->allGather(gathered, slice, {.unit = 3, .phase = Phase::Forward}).wait();
    communicator->reduceScatter(gathered.to(at::kFloat), slice, true, {.unit = 2, .phase = Phase::Backward}).wait();
    EXPECT_TRUE(at::equal(slice, torch::full({4}, 6.0F)));
    using Work = std::pair<Phase, observe::UnitIndex>;
    EXPECT_EQ(witness.work, (std::vector<Work>{{Phase::Forward, 3}, {Phase::Backward, 2}}));
    EXPECT_EQ(witness.open, 0);
    EXPECT_TRUE(witness.calls.empty());
}

/// Two engines of one job have groups of the same members each.
TEST(Communicator, groupsOfTheSameMembersAreApart)
{
    Witness witness;
    test::runRanks(4, witness, [](engine::Communicator &world) {
        const int first = world.rank() % 2;
        const std::vector<int> members = {first, first + 2};
        const auto one = world.subgroup(members);
        const auto other = world.subgroup(members);
        for (engine::Communicator *group : {other.get(), one.get(), other.get()}) {
            const at::Tensor sum = torch::full({3}, world.rank() + 1.0);
            group->allReduce(sum, {}).wait();
            EXPECT_TRUE(at::equal(sum, torch::full({3}, 2.0 * first + 4.0)));
        }
    });
    EXPECT_EQ(witness.uids.size(), 5U) << "of the four ranks, and two of each pair";
}

TEST(Communicator, reductionsInBf16RoundEachPartAndAddInFp32)
{
    observe::Observer observer;
    for (const int worldSize : {1, 2, 3, 4}) {
        SCOPED_TRACE(worldSize);
        const int64_t part = 384;
        std::vector<at::Tensor> all;
        at::Tensor expected = torch::zeros({part * worldSize});
        for (int rank = 0; rank < worldSize; ++rank) {
            all.push_back(torch::randn({part * worldSize}, at::detail::createCPUGenerator(rank + 1)));
            // With one rank nothing travels, and nothing is rounded.
            expected += worldSize == 1 ? all.back() : all.back().to(at::kBFloat16).to(at::kFloat);
        }
        test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
            const int rank = communicator.rank();
            const at::Tensor own = expected.narrow(0, rank * part, part);
            const at::Tensor slice = torch::full({part}, 5.0F);
            communicator.reduceScatterInBf16(all[static_cast<size_t>(rank)].clone(), slice, false, {}).wait();
            EXPECT_TRUE(at::equal(slice, own));
            communicator.reduceScatterInBf16(all[static_cast<size_t>(rank)].clone(), slice, true, {}).wait();
            EXPECT_TRUE(at::allclose(slice, 2 * own));
            const at::Tensor sum = all[static_cast<size_t>(rank)].clone();
            communicator.allReduceInBf16(sum, {}).wait();
            EXPECT_TRUE(at::equal(sum, worldSize == 1 ? expected : expected.to(at::kBFloat16).to(at::kFloat)));
        });
    }
}

TEST(Communicator, tellsTheObserverOfEachCall)
{
    Witness witness;
    test::runRanks(3, witness, [](engine::Communicator &communicator) {
        const at::Tensor gathered = at::empty({3 * 128}, at::kBFloat16);
        communicator.allGather(gathered, torch::ones({128}), {4, Phase::Backward}).wait();
    });
    EXPECT_EQ(witness.uids.size(), 1U) << "all ranks name the group alike";
    std::map<int32_t, std::vector<int64_t>> sequences;
    int gathers = 0;
    for (const Witness::Call &call : witness.calls) {
        EXPECT_TRUE(call.enqueued && call.started && call.ended);
        sequences[call.info.communicator].push_back(call.info.sequence);
        if (call.info.operation != Operation::AllGather)
            continue;
        ++gathers;
        EXPECT_EQ(call.info.unit, 4);
        EXPECT_EQ(call.info.phase, Phase::Backward);
        EXPECT_EQ(call.info.dtype, "bf16");
        EXPECT_EQ(call.info.inputBytes, 256);
        EXPECT_EQ(call.info.outputBytes, 768);
    }
    EXPECT_EQ(gathers, 3);
    for (const auto &[communicator, numbers] : sequences)
        EXPECT_EQ(numbers, (std::vector<int64_t>{0, 1, 2})) << "connect, gather, last barrier";
}

TEST(Communicator, withoutAStoreSaysSo)
{
    observe::Observer observer;
    const auto communicator = engine::Communicator::create({nullptr, 1, 2}, observer);
    ASSERT_FALSE(communicator.has_value());
    EXPECT_EQ(communicator.error().text, "Rank 1 of 2 was given no store to meet the other ranks in.");
}

TEST(Pending, ofBothWaitsForBothAndThrowsWhatEitherThrew)
{
    const auto lane = engine::CommunicationLane::createThread("test");
    bool done = false;
    const engine::Pending failed = lane->enqueue([] { throw std::runtime_error("within the group"); });
    const engine::Pending good = lane->enqueue([&done] { done = true; });
    try {
        engine::both(failed, good).wait();
        ADD_FAILURE() << "the first one's exception was lost";
    } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), "within the group");
    }
    EXPECT_TRUE(done);
    EXPECT_THROW(engine::both(good, failed).wait(), std::runtime_error);
    EXPECT_FALSE(engine::both({}, {}));
    EXPECT_NO_THROW(engine::both({}, good).wait());
}

TEST(Cast, roundsAsLibTorchDoes)
{
    at::Tensor values = torch::randn({100001});
    values[0] = INFINITY;
    values[1] = -INFINITY;
    values[2] = NAN;
    values[3] = 0;
    values[4] = 1.00390625F; // halfway between two bf16 values: ties to even
    values[5] = 3.3895314e38F;
    const at::Tensor cast = at::empty(values.sizes(), at::kBFloat16);
    engine::castToBf16(static_cast<uint16_t *>(cast.mutable_data_ptr()), values.const_data_ptr<float>(),
                       values.numel());
    EXPECT_TRUE(at::allclose(cast.to(at::kFloat), values.to(at::kBFloat16).to(at::kFloat), 0, 0, true));
    values[5] = 65519.9F; // below the half-way to the first that fp16 lacks
    values[6] = 65520;
    values[7] = 3e-8F; // more than half of the smallest
    const at::Tensor half = at::empty(values.sizes(), at::kHalf);
    engine::castToFp16(static_cast<uint16_t *>(half.mutable_data_ptr()), values.const_data_ptr<float>(),
                       values.numel());
    EXPECT_TRUE(at::allclose(half.to(at::kFloat), values.to(at::kHalf).to(at::kFloat), 0, 0, true));
}

TEST(CollectiveOrder, differsWithWhatWasIssuedAndInWhichOrder)
{
    engine::CollectiveOrder a, b;
    a.add(Operation::AllGather, 1);
    a.add(Operation::ReduceScatter, 2);
    b.add(Operation::ReduceScatter, 2);
    b.add(Operation::AllGather, 1);
    const double first = a.digest();
    EXPECT_NE(first, b.digest());
    EXPECT_EQ(a.digest(), 0.0) << "begins anew";
    a.add(Operation::AllGather, 1);
    a.add(Operation::ReduceScatter, 2);
    EXPECT_EQ(a.digest(), first);
    const at::Tensor scalars_K = at::zeros({engine::StepScalars::kCount}, at::kDouble);
    scalars_K[engine::StepScalars::kOrder].fill_(2 * first);
    EXPECT_NO_THROW(engine::StepScalars(scalars_K, 2 * first).host());
    EXPECT_ANY_THROW(engine::StepScalars(scalars_K, 2 * first + 1).host());
}

} // namespace shardscope
