// SPDX-License-Identifier: Apache-2.0
#include "core/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardscope::train {

double LearningRateSchedule::at(int64_t step) const
{
    if (step <= warmupSteps)
        return peak * static_cast<double>(step) / static_cast<double>(warmupSteps);
    const int64_t decaySteps = std::max<int64_t>(steps - warmupSteps, 1);
    const double progress = std::min(1.0, static_cast<double>(step - warmupSteps) / static_cast<double>(decaySteps));
    return minimum + (peak - minimum) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

} // namespace shardscope::train
