// SPDX-License-Identifier: Apache-2.0
#include "core/train/rank_exchange.h"

#include <gmock/gmock.h>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

using namespace shardscope;
using shardscope::train::RankExchange;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

void onRanks(int worldSize, const std::function<void(RankExchange &)> &f)
{
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < worldSize; ++rank) {
        threads.emplace_back([&, rank] {
            RankExchange exchange(store, rank, worldSize);
            f(exchange);
        });
    }
    for (std::thread &thread : threads)
        thread.join();
}

TEST(RankExchangeTest, AllHearAllInTheOrderOfTheRanks)
{
    onRanks(3, [](RankExchange &exchange) {
        for (int round = 0; round < 3; ++round) { // the same name again is another exchange
            const auto all = exchange.allGather("x", fmt::format("{} of {}", exchange.rank(), round));
            ASSERT_TRUE(all);
            EXPECT_THAT(*all, ElementsAre(fmt::format("0 of {}", round), fmt::format("1 of {}", round),
                                          fmt::format("2 of {}", round)));
        }
        EXPECT_EQ(exchange.fromRoot("y", exchange.rank() == 0 ? "root's" : "mine").value(), "root's");
    });
}

TEST(RankExchangeTest, AnErrorOfOneIsAnErrorOfAll)
{
    onRanks(3, [](RankExchange &exchange) {
        EXPECT_TRUE(exchange.agree("fine", {}));
        const auto agreed = exchange.agree("disk", exchange.rank() == 1 ? Result<>(fail("full")) : Result<>());
        ASSERT_FALSE(agreed);
        EXPECT_EQ(agreed.error().text, "Rank 1: full");
    });
}

TEST(RankExchangeTest, TextsThatAllHaveReadAreForgotten)
{
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
            RankExchange exchange(store, rank, 3);
            for (int round = 0; round < 50; ++round) {
                EXPECT_TRUE(exchange.fromRoot("id", "text"));
                EXPECT_TRUE(exchange.agree("done", {}));
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(store->getNumKeys(), 3) << "of the last call alone: nobody knows yet who has read them";
}

TEST(RankExchangeTest, WhatIsPostedIsFoundWithoutAWait)
{
    const auto store = c10::make_intrusive<c10d::HashStore>();
    RankExchange first(store, 0, 2);
    RankExchange second(store, 1, 2);
    EXPECT_EQ(second.peek("x").value(), std::nullopt);
    ASSERT_TRUE(first.post("x", "text"));
    EXPECT_EQ(second.peek("x").value(), "text");
    EXPECT_EQ(second.peek("x").value(), "text"); // stays
    first.withdraw("x");
    EXPECT_EQ(second.peek("x").value(), std::nullopt);
}

TEST(RankExchangeTest, OneRankNeedsNoStore)
{
    RankExchange exchange(nullptr, 0, 1);
    EXPECT_EQ(exchange.peek("x").value(), std::nullopt);
    ASSERT_TRUE(exchange.post("x", "text"));
    EXPECT_EQ(exchange.peek("x").value(), "text");
    EXPECT_THAT(exchange.allGather("x", "me").value(), ElementsAre("me"));
    const auto agreed = exchange.agree("disk", fail("full"));
    ASSERT_FALSE(agreed);
    EXPECT_EQ(agreed.error().text, "full");
}

} // namespace
