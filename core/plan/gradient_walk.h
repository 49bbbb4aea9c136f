// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/shapes/unit_plan.h"

#include <cstdint>
#include <vector>

namespace shardscope::plan {

/// A bucket and its sizes in elements.
struct LedgerBucket
{
    const shapes::BucketPlan *plan = nullptr;
    int64_t elements = 0; ///< of its parameters
    int64_t padded = 0;   ///< of the whole bucket
    int64_t held = 0;     ///< by a rank
};

struct LedgerUnit
{
    const shapes::UnitPlan *plan = nullptr;
    std::vector<LedgerBucket> buckets;
};

/// Bytes of fp32 gradients on the device.
struct GradientPeak
{
    int64_t bytes = 0;          ///< the most that there is at once
    int64_t unreducedBytes = 0; ///< of these, before or in their reduction
    int64_t beforeBytes = 0;    ///< when the last micro-batch's forward begins
    /// While each unit's backward runs, in the last micro-batch; units in the order of the forward pass.
    std::vector<int64_t> unitBytes;
};

/// Follows a step's backward passes: a unit's gradients are allocated when it is computed, its slice when its reduction
/// begins, and the whole is freed when that is waited for, which is when another unit is to begin while
/// shapes::kReductionsInFlight are under way.
GradientPeak gradientPeakOf(const shapes::PassSettings &pass, const std::vector<LedgerUnit> &units,
                            int64_t microBatches);

} // namespace shardscope::plan
