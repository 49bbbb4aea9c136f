// SPDX-License-Identifier: Apache-2.0
// The arithmetic between a step's sums and its update, one text for the processor and the device.
#pragma once

#include "core/model/kernels/kernels.h"

#include <cmath>

#if defined(__CUDACC__)
#define SHARDSCOPE_BOTH __host__ __device__
#else
#define SHARDSCOPE_BOTH
#endif

namespace shardscope::model::kernels {

/// The factor of one step's gradients (stepFactor() of kernels.h says what it is), and the scaler's next state.
SHARDSCOPE_BOTH inline float decideStep(const double *sums, double clipNorm, double *scaler, const ScalerRule &rule)
{
    const bool isFinite = std::isfinite(sums[0]) && std::isfinite(sums[1]);
    const double scale = scaler ? scaler[ScalerRule::kScale] : 1.0;
    const double coefficient = clipNorm > 0 ? clipNorm / (std::sqrt(sums[0]) / scale + 1e-6) : 1.0;
    const float factor = static_cast<float>(coefficient > 1.0 ? 1.0 : coefficient) * static_cast<float>(1.0 / scale);
    if (scaler && !std::isfinite(sums[0])) {
        const double lower = static_cast<float>(scale * rule.backoff);
        scaler[ScalerRule::kScale] = lower < rule.floor ? rule.floor : lower;
        scaler[ScalerRule::kGrowthTracker] = 0;
        scaler[ScalerRule::kSkippedSteps] += 1;
    } else if (scaler && (scaler[ScalerRule::kGrowthTracker] += 1) >= static_cast<double>(rule.growthInterval)) {
        const double higher = static_cast<float>(scale * rule.growthFactor);
        scaler[ScalerRule::kScale] = std::isfinite(higher) ? higher : scale;
        scaler[ScalerRule::kGrowthTracker] = 0;
    }
    return isFinite ? factor : NAN;
}

} // namespace shardscope::model::kernels
