// SPDX-License-Identifier: Apache-2.0
#include "core/launch/hang_watch.h"
#include "profiler/collect/flight_ring.h"
#include "tests/support/temporary_folder.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::launch;
using testing::HasSubstr;

static RankPulse pulse(int rank, int64_t begun, bool inCollective, bool stopped = false)
{
    return {.rank = rank, .begun = begun, .inCollective = inCollective, .stopped = stopped};
}

TEST(LateRank, isStoppedOrBehindOrNotThere)
{
    EXPECT_EQ(lateRank({pulse(0, 5, true), pulse(1, 5, true, true)}), 1);
    EXPECT_EQ(lateRank({pulse(0, 5, true), pulse(1, 4, false)}), 1);
    EXPECT_EQ(lateRank({pulse(0, 4, true), pulse(1, 5, true)}), 0);
    EXPECT_EQ(lateRank({pulse(0, 5, true), pulse(1, 5, false)}), 1);
    EXPECT_EQ(lateRank({pulse(0, 5, true), pulse(1, 5, true)}), std::nullopt);
    EXPECT_EQ(lateRank({}), std::nullopt);
}

/// Two ranks that exist in their flight files only. Their process is this one, or none.
class HangWatchTest : public testing::Test
{
protected:
    HangWatchTest()
    {
        EXPECT_TRUE(folder.createAttempt(1));
        for (int rank = 0; rank < 2; ++rank)
            flights.push_back(collect::FlightRing::create(folder.flightFile(1, rank), rank, 2, true).value());
        watch.moved(0);
    }
    void begin(int rank, int64_t number)
    {
        flights[rank]->begin(
            number, {.sequence = number + 100, .operation = Operation::ReduceScatter, .phase = Phase::Backward}, 7,
            "block.3", "uid");
        flights[rank]->enqueued(number, 1'700'000'000'000'000'000);
    }
    void end(int rank, int64_t number) { flights[rank]->ended(number, 1'700'000'000'500'000'000); }
    std::optional<run::RunFailure> check(int64_t second) { return watch.check(ranks, second * kSecond); }

    static constexpr int64_t kSecond = 1'000'000'000;
    test::TemporaryFolder temporary;
    run::RunFolder folder{temporary.path()};
    std::vector<std::unique_ptr<collect::FlightRing>> flights;
    std::vector<run::RankStatus> ranks{{.rank = 0}, {.rank = 1}};
    HangWatch watch{folder, 1, 10 * kSecond};
};

TEST_F(HangWatchTest, namesTheLateRankAndItsLastCollective)
{
    begin(0, 0);
    begin(1, 0);
    end(0, 0);
    end(1, 0);
    begin(0, 1);
    for (int second = 1; second < 10; ++second)
        ASSERT_FALSE(check(second)) << second;
    const auto hang = check(10);
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, 1);
    EXPECT_THAT(hang->text, HasSubstr("for 10.0 s no rank"));
    EXPECT_THAT(
        hang->text,
        HasSubstr("Rank 1, which is late, was last in reduce_scatter 100 of block.3 (backward, step 7), ended"));
    EXPECT_THAT(hang->text, HasSubstr("Rank 0 is in reduce_scatter 101 of block.3"));
    EXPECT_THAT(hang->text, HasSubstr("--resume"));
    EXPECT_THAT(hang->text, HasSubstr("run.hang_seconds"));
}

TEST_F(HangWatchTest, beginsAnewWithEverythingThatMoves)
{
    begin(0, 0);
    EXPECT_FALSE(check(9));
    begin(1, 0); // another collective
    EXPECT_FALSE(check(10));
    EXPECT_FALSE(check(19));
    fs::create_directories(folder.checkpointsFolder() / ".step-000007.partial");
    std::ofstream(folder.checkpointsFolder() / ".step-000007.partial" / "rank-0.bin") << "grows";
    EXPECT_FALSE(check(20)) << "a checkpoint is being written";
    EXPECT_FALSE(check(29));
    watch.moved(30 * kSecond); // a step
    EXPECT_FALSE(check(39));
    EXPECT_TRUE(check(40));
}

TEST_F(HangWatchTest, aProcessThatComputesWithoutCollectivesIsNoHang)
{
    begin(0, 0);
    end(0, 0);
    ranks[0].pid = ::getpid();
    watch = HangWatch(folder, 1, 100'000'000);
    watch.moved(0);
    EXPECT_FALSE(watch.check(ranks, 1));
    const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 5;
    while (std::clock() < until) // uses 0.2 s of a core
        continue;
    EXPECT_FALSE(watch.check(ranks, 200'000'000));
    EXPECT_TRUE(watch.check(ranks, 100 * kSecond)) << "0.2 s of 100 s is waiting";
}

TEST_F(HangWatchTest, waitsForEverWithoutALimit)
{
    watch = HangWatch(folder, 1, 0);
    begin(0, 0);
    EXPECT_FALSE(check(1));
    EXPECT_FALSE(check(1'000'000));
}
