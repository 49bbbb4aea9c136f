// SPDX-License-Identifier: Apache-2.0
#include "core/train/validator.h"

#include <algorithm>
#include <array>

namespace shardscope::train {

Validator::Validator(const data::Dataset &dataset, const BatchPlan &plan)
    : m_plan(plan)
    , m_samples(std::min(dataset.validationWindows(), kMaxSamples))
{
}

std::optional<double> Validator::run(model::Decoder &decoder, const BatchLoader &loader) const
{
    if (m_samples == 0)
        return std::nullopt;
    // Under `full` every rank must take part in every gather: each runs as many batches as the busiest.
    const int64_t rowsOfRound = m_plan.ranks * m_plan.microBatch;
    double sum = 0;
    double counted = 0;
    for (int64_t first = m_plan.rank * m_plan.microBatch, round = 0; round * rowsOfRound < m_samples;
         ++round, first += rowsOfRound) {
        Batch batch;
        {
            const observe::MemoryScope memory(decoder.engine().observer(), {MemoryCategory::Input});
            batch = loader.validation(first, m_plan.microBatch, m_samples);
        }
        sum += decoder.forwardLoss(batch.tokens_BT, batch.targets_BT, 1.0).item<double>();
        counted += static_cast<double>(batch.countedTokens);
    }
    const auto total = decoder.engine().sumOverRanks(std::array{sum, counted});
    return total[0] / total[1];
}

} // namespace shardscope::train
