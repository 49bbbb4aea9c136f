// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/model/number_check.h"

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::train {

/// A step whose loss or gradient was no number, and what running it again has shown.
struct BrokenStep
{
    int64_t number = 0;
    StepState state = StepState::Nan; ///< nan or inf
    bool inLoss = false;              ///< else in the gradient alone
    bool isAtFloor = false;           ///< fp16's loss scale is 1: no lower one can help
    int64_t microBatches = 1;
    std::optional<model::NumberFinding> first; ///< none: all was finite when it ran again
    std::string unit;                          ///< the finding's

    /// "The loss of step 7 is NaN".
    std::string nameText() const;
    /// The weights were so before the step.
    bool isOfWeights() const { return first && first->operation == "parameter"; }
};

/// One sentence without its full stop: "The loss of step 7 is NaN: NaN appeared first in forward, block.3, ffn.down
/// (rank 1)".
std::string describe(const BrokenStep &step);
/// {"step", "rank", "unit", "operation", "direction", "parameter", "micro_batch", "value": "nan"|"inf", "skipped"};
/// null where it could not be found.
std::string detailJson(const BrokenStep &step, bool skipped);

} // namespace shardscope::train
