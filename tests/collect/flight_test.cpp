// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/observe/flight.h"
#include "profiler/collect/flight_ring.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace shardscope::collect {
namespace {

using test::TemporaryFolder;

using observe::CollectiveInfo;
using observe::readFlight;
using testing::HasSubstr;

CollectiveInfo gather(int64_t sequence)
{
    return {.sequence = sequence,
            .operation = Operation::AllGather,
            .unit = 3,
            .phase = Phase::Backward,
            .dtype = "bf16",
            .inputBytes = 100,
            .outputBytes = 200};
}

TEST(Flight, SurvivesTheKillingOfItsProcessAndNamesTheCollective)
{
    const TemporaryFolder folder;
    const auto path = folder.path() / "rank-1.flight";
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto ring = FlightRing::create(path, 1, 2, true);
        if (!ring)
            ::_exit(1);
        (*ring)->step(41);
        for (int64_t i = 0; i < 5; ++i) {
            (*ring)->begin(i, gather(i), 41, "block.3", "uid-a");
            (*ring)->enqueued(i, 1'000 + i);
            (*ring)->started(i, 2'000 + i);
            if (i < 4)
                (*ring)->ended(i, 3'000 + i);
        }
        if (::write(ready[1], "x", 1) != 1)
            ::_exit(1);
        ::pause();
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));

    const auto flight = readFlight(path);
    ASSERT_TRUE(flight) << flight.error().text;
    EXPECT_EQ(flight->rank, 1);
    EXPECT_EQ(flight->worldSize, 2);
    EXPECT_EQ(flight->pid, child);
    EXPECT_EQ(flight->step, 41);
    ASSERT_EQ(flight->records.size(), 5u);
    EXPECT_EQ(flight->records[0].endedNs, 3'000);
    const observe::FlightRecord *pending = flight->pending();
    ASSERT_NE(pending, nullptr);
    EXPECT_EQ(pending->sequence, 4);
    EXPECT_EQ(pending->enqueuedNs, 1'004);
    EXPECT_EQ(pending->startedNs, 2'004);
    EXPECT_EQ(pending->endedNs, std::nullopt);
    EXPECT_EQ(pending->operation, Operation::AllGather);
    EXPECT_EQ(pending->phase, Phase::Backward);
    EXPECT_EQ(pending->unit, "block.3");
    EXPECT_EQ(pending->communicator, "uid-a");
    EXPECT_EQ(pending->inputBytes, 100);
    EXPECT_EQ(pending->outputBytes, 200);
    EXPECT_THAT(observe::describe(*pending), HasSubstr("all_gather 4 of block.3 (backward, step 41), started "));
    EXPECT_THAT(observe::describe(*pending), HasSubstr("not ended"));
}

TEST(Flight, HoldsTheLastOnesAndForgetsWhatTheyOverwrote)
{
    const TemporaryFolder folder;
    const auto path = folder.path() / "rank-0.flight";
    auto ring = FlightRing::create(path, 0, 1, true);
    ASSERT_TRUE(ring) << ring.error().text;
    constexpr int64_t kCalls = observe::kFlightEntries + 100;
    for (int64_t i = 0; i < kCalls; ++i)
        (*ring)->begin(i, gather(i), 1, std::string(80, 'u'), std::string(80, 'c'));
    (*ring)->ended(5, 7); // no longer there
    const auto flight = readFlight(path);
    ASSERT_TRUE(flight) << flight.error().text;
    ASSERT_EQ(flight->records.size(), observe::kFlightEntries);
    EXPECT_EQ(flight->records.front().number, 100);
    EXPECT_EQ(flight->records.back().number, kCalls - 1);
    EXPECT_EQ(flight->records.front().unit, std::string(31, 'u'));
    for (const auto &record : flight->records)
        EXPECT_EQ(record.endedNs, std::nullopt);
}

TEST(Flight, TakesTheLastCallWhereNobodyTellsOfEnds)
{
    const TemporaryFolder folder;
    const auto path = folder.path() / "rank-0.flight";
    auto ring = FlightRing::create(path, 0, 1, false);
    ASSERT_TRUE(ring) << ring.error().text;
    (*ring)->begin(0, gather(0), 1, "", "");
    (*ring)->begin(1, gather(1), 1, "", "");
    const auto flight = readFlight(path);
    ASSERT_TRUE(flight) << flight.error().text;
    EXPECT_EQ(flight->pending()->sequence, 1);
    EXPECT_THAT(observe::describe(*flight->pending()), HasSubstr("being enqueued"));
}

TEST(Flight, RefusesWhatIsNoFlight)
{
    const TemporaryFolder folder;
    const auto other = folder.path() / "other";
    std::ofstream(other) << std::string(200'000, 'x');
    EXPECT_THAT(readFlight(other).error().text, HasSubstr("is no flight recording"));
    EXPECT_THAT(readFlight(folder.path() / "none").error().text, HasSubstr("none"));

    const auto newer = folder.path() / "newer";
    ASSERT_TRUE(FlightRing::create(newer, 0, 1, true));
    std::string text = *readTextFile(newer);
    text[8] = 9; // the version
    std::ofstream(newer, std::ios::binary) << text;
    EXPECT_THAT(readFlight(newer).error().text, HasSubstr("version 9"));
}

TEST(Flight, SaysWhereItCannotBeMade)
{
    const auto ring = FlightRing::create("/nowhere/rank-0.flight", 0, 1, true);
    ASSERT_FALSE(ring);
    EXPECT_THAT(ring.error().text, HasSubstr("/nowhere/rank-0.flight"));
}

} // namespace
} // namespace shardscope::collect
