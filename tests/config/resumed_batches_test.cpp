// SPDX-License-Identifier: Apache-2.0
#include "core/config/resumed_batches.h"

#include <functional>
#include <gtest/gtest.h>
#include <tuple>

using shardscope::config::RunConfiguration;
using Batches = std::tuple<int64_t, int64_t, int64_t>; ///< global, micro, accumulation; 0: left to derive

namespace {

/// What a run of 2 ranks × 4 sequences × 3 micro-batches goes on with.
Batches after(const std::function<void(RunConfiguration &)> &change)
{
    RunConfiguration before;
    before.parallel.ranks = 2;
    before.train.globalBatch = 24;
    before.train.microBatch = 4;
    before.train.accumulation = 3;
    RunConfiguration now = before;
    shardscope::config::forgetBatches(now);
    change(now);
    shardscope::config::settleBatches(now, before);
    return {now.train.globalBatch, now.train.microBatch, now.train.accumulation};
}

TEST(ResumedBatches, StayWhereNothingChanges)
{
    EXPECT_EQ(after([](RunConfiguration &c) { c.train.steps = 5; }), Batches(24, 4, 3));
}

TEST(ResumedBatches, KeepTheMicroBatchAtOtherRanksWhereItFits)
{
    EXPECT_EQ(after([](RunConfiguration &c) { c.parallel.ranks = 1; }), Batches(24, 4, 0));
    EXPECT_EQ(after([](RunConfiguration &c) { c.parallel.ranks = 6; }), Batches(24, 4, 0));
    EXPECT_EQ(after([](RunConfiguration &c) { c.parallel.ranks = 4; }), Batches(24, 0, 0)); // 16 does not divide 24
}

TEST(ResumedBatches, WhatIsAskedForAnewIsNotTouched)
{
    EXPECT_EQ(after([](RunConfiguration &c) { c.train.microBatch = 2; }), Batches(24, 2, 0));
    EXPECT_EQ(after([](RunConfiguration &c) { c.train.accumulation = 2; }), Batches(24, 0, 2));
    EXPECT_EQ(after([](RunConfiguration &c) {
                  c.parallel.ranks = 3;
                  c.train.accumulation = 2;
              }),
              Batches(24, 4, 2));
    EXPECT_EQ(after([](RunConfiguration &c) { c.train.globalBatch = 16; }), Batches(16, 4, 0));
    EXPECT_EQ(after([](RunConfiguration &c) { c.train.globalBatch = 0; }), Batches(0, 4, 0));
}

} // namespace
