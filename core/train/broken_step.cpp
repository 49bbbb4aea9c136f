// SPDX-License-Identifier: Apache-2.0
#include "core/train/broken_step.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardscope::train {

/// "the gradient of block.3.ffn.down.weight", "ffn.down".
static std::string whatOf(const model::NumberFinding &first)
{
    if (first.parameter.empty())
        return first.operation;
    const std::string gradient = fmt::format("the gradient of {}", first.parameter);
    return first.operation == "gradient" ? gradient : fmt::format("{} of {}", first.operation, gradient);
}

std::string BrokenStep::nameText() const
{
    return fmt::format("The {} of step {} is {}{}", inLoss ? "loss" : "gradient", number,
                       state == StepState::Nan ? "NaN" : "infinite",
                       isAtFloor ? " at a loss scale of 1, which is as low as it gets" : "");
}

std::string describe(const BrokenStep &step)
{
    const std::string text = step.nameText();
    if (!step.first)
        return text + ", but not when the step was run again: operators that don't give the same bits each time do "
                      "this (train.deterministic=true avoids them), and so does a device or memory that errs";
    const model::NumberFinding &first = *step.first;
    const std::string_view value = first.isNan ? "NaN" : "an infinity";
    if (step.isOfWeights())
        return fmt::format("{}, because the weights are: {} had {} before the step (rank {})", text, first.parameter,
                           value, first.rank);
    const std::string microBatch =
        step.microBatches > 1 ? fmt::format(", micro-batch {} of {}", first.microBatch + 1, step.microBatches) : "";
    return fmt::format("{}: {} appeared first in {}, {}, {} (rank {}{})", text, value, toText(first.phase), step.unit,
                       whatOf(first), first.rank, microBatch);
}

std::string detailJson(const BrokenStep &step, bool skipped)
{
    nlohmann::ordered_json detail = {
        {"step", step.number},  {"rank", nullptr},      {"unit", nullptr},        {"operation", nullptr},
        {"direction", nullptr}, {"parameter", nullptr}, {"micro_batch", nullptr}, {"value", toText(step.state)},
        {"skipped", skipped}};
    if (step.first) {
        detail["rank"] = step.first->rank;
        detail["unit"] = step.unit;
        detail["operation"] = step.first->operation;
        detail["direction"] = toText(step.first->phase);
        if (!step.first->parameter.empty())
            detail["parameter"] = step.first->parameter;
        detail["micro_batch"] = step.first->microBatch;
        detail["value"] = step.first->isNan ? "nan" : "inf";
    }
    return detail.dump();
}

} // namespace shardscope::train
