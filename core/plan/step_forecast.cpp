// SPDX-License-Identifier: Apache-2.0
#include "core/plan/step_forecast.h"

#include "core/shapes/activations.h"

#include <algorithm>

namespace shardscope::plan {

StepForecast forecastOf(const shapes::ModelPlan &plan, const shapes::ModelShape &shape,
                        const config::RunConfiguration &configuration)
{
    const Precision compute = configuration.precision.compute;
    const int64_t tokens = configuration.train.microBatch * configuration.train.sequenceLength;
    const int64_t wholeBlock = tokens * blockActivationsPerToken(shape, compute, Recompute::Off).bytes();
    int64_t ofAll = 0;
    for (const shapes::UnitPlan &unit : plan.units) {
        if (unit.shape.kind != UnitKind::Block)
            continue;
        const auto kept = blockActivationsPerToken(shape, compute, unit.settings.recompute);
        ofAll += tokens * (unit.settings.activationOffload ? kept.statisticsBytes : kept.bytes());
    }
    const MemoryLedger ledger = ledgerOf(plan, LedgerOptions::from(configuration));
    StepForecast begins{ledger.peak, ofAll, ledger.hostBytes};
    begins.states.gradients = ledger.headGradients;
    const StepForecast ends{ledger.peak, wholeBlock, ledger.hostBytes};
    return begins.total() >= ends.total() ? begins : ends;
}

} // namespace shardscope::plan
