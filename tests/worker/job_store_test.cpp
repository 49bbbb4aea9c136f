// SPDX-License-Identifier: Apache-2.0
#include "app/worker/job_store.h"

#include <gmock/gmock.h>

using namespace shardscope;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(JobStore, saysHowManyRanksAreMissing)
{
    worker::RankEnvironment place;
    place.worldSize = 3;
    place.masterPort = 0; // any free one
    const auto store = worker::connectStore(place, std::chrono::seconds(1));
    ASSERT_FALSE(store);
    EXPECT_THAT(store.error().text, AllOf(HasSubstr("1 of 3 ranks came"), HasSubstr("MASTER_ADDR")));
    EXPECT_THAT(store.error().text, ::testing::Not(HasSubstr("Can't listen")));
}
