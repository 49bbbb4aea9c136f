// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardscope::train {

/// Linear warm-up, then a cosine down to a minimum. A function of the step alone, so that a resumed run has the same.
/// The rate is that of the global batch: it does not depend on the number of ranks, because the gradient does not.
struct LearningRateSchedule
{
    double peak = 1e-3;
    double minimum = 1e-4; ///< in force at the last step
    int64_t warmupSteps = 0;
    int64_t steps = 1;

    /// The rate of the step-th step, the first being 1: peak × step / warmupSteps at first.
    double at(int64_t step) const;
};

} // namespace shardscope::train
