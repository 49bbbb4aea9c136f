// SPDX-License-Identifier: Apache-2.0
#include "core/config/resumed_batches.h"

namespace shardscope::config {

void forgetBatches(RunConfiguration &configuration)
{
    configuration.train.microBatch = 0;
    configuration.train.accumulation = 0;
}

void settleBatches(RunConfiguration &configuration, const RunConfiguration &before)
{
    auto &train = configuration.train;
    const int64_t ranks = configuration.parallel.ranks;
    const bool asked = train.microBatch != 0 || train.accumulation != 0;
    if (!asked && train.globalBatch == before.train.globalBatch && ranks == before.parallel.ranks) {
        train.microBatch = before.train.microBatch;
        train.accumulation = before.train.accumulation;
        return;
    }
    if (train.microBatch == 0 && before.train.microBatch > 0) {
        const int64_t sequences = ranks * before.train.microBatch * (train.accumulation ? train.accumulation : 1);
        const bool fits = train.accumulation == 0 ? sequences > 0 && train.globalBatch % sequences == 0
                                                  : train.globalBatch == sequences;
        if (fits)
            train.microBatch = before.train.microBatch;
    }
}

} // namespace shardscope::config
