// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/data/dataset.h"
#include "core/model/decoder.h"
#include "core/train/batch_loader.h"

#include <optional>

namespace shardscope::train {

/// The mean loss on held-out samples, the same ones each time and at every number of ranks.
class Validator
{
public:
    /// More samples than this are not looked at: a validation must stay short beside the steps between two of them.
    static constexpr int64_t kMaxSamples = 64;

    Validator(const data::Dataset &dataset, const BatchPlan &plan);

    /// Nothing where the dataset holds nothing out. All ranks call it, between two steps; waits for the result.
    std::optional<double> run(model::Decoder &decoder, const BatchLoader &loader) const;

private:
    BatchPlan m_plan;
    int64_t m_samples;
};

} // namespace shardscope::train
