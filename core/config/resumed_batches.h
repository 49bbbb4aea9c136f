// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/run_configuration.h"

namespace shardscope::config {

/// Batches of a run that goes on, perhaps at another number of ranks. forgetBatches() before anything new is applied to
/// the run's configuration, settleBatches() afterwards: micro_batch and accumulation that were not asked for anew are
/// what they were where nothing changed, else what fits: the global batch stays, and the micro-batch if it can, so that
/// neither the samples of a step nor its memory change. What is left to derive checkRun() derives.
void forgetBatches(RunConfiguration &configuration);
void settleBatches(RunConfiguration &configuration, const RunConfiguration &before);

} // namespace shardscope::config
