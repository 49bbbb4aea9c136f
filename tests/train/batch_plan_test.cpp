// SPDX-License-Identifier: Apache-2.0
#include "core/train/batch_loader.h"

#include <gtest/gtest.h>
#include <set>
#include <tuple>

using shardscope::train::BatchPlan;

namespace {

/// All samples that all ranks take in a step.
std::multiset<int64_t> samplesOfStep(int64_t step, int64_t ranks, int64_t microBatch, int64_t accumulation)
{
    std::multiset<int64_t> samples;
    for (int64_t rank = 0; rank < ranks; ++rank) {
        const BatchPlan plan{ranks, rank, microBatch, accumulation};
        for (int64_t micro = 0; micro < accumulation; ++micro) {
            for (int64_t row = 0; row < microBatch; ++row)
                samples.insert(plan.firstSample(step, micro) + row);
        }
    }
    return samples;
}

TEST(BatchPlanTest, AStepTakesItsSamplesOnceWhateverTheNumberOfRanks)
{
    std::multiset<int64_t> expected;
    for (int64_t sample = 5 * 24; sample < 6 * 24; ++sample)
        expected.insert(sample);
    for (const auto &[ranks, micro, accumulation] :
         {std::tuple{1, 24, 1}, {1, 4, 6}, {2, 6, 2}, {3, 8, 1}, {4, 2, 3}, {8, 3, 1}})
        EXPECT_EQ(samplesOfStep(5, ranks, micro, accumulation), expected) << ranks << " ranks";
}

} // namespace
