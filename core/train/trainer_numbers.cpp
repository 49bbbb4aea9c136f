// SPDX-License-Identifier: Apache-2.0
// A step whose loss or gradient is NaN or infinite: what is looked for, said and done.
#include "core/train/broken_step.h"
#include "core/train/trainer.h"

#include <algorithm>
#include <cmath>

namespace shardscope::train {

using observe::SpanInfo;
using observe::SpanScope;

static constexpr std::string_view kRemedy =
    "a smaller optimizer.learning_rate, a longer optimizer.warmup_steps or optimizer.clip_norm=1";

/// Runs the step again, on the weights that it had, and looks at every operation.
std::optional<model::NumberFinding> Trainer::findFirst(int64_t step)
{
    const SpanScope span(m_job.observer, SpanInfo{"check numbers", SpanCategory::Host, Phase::Validate});
    const observe::MemoryScope memory(m_job.observer, {MemoryCategory::Temporary});
    engine::Engine &engine = m_job.decoder.engine();
    model::NumberCheck check(engine);
    check.lookAtParameters();
    if (auto ofWeights = check.first())
        return ofWeights;
    OpenStep again;
    again.number = step;
    engine.reduceScalars(accumulateGradients(again, &check));
    check.lookAtReducedGradients();
    auto first = check.first();
    engine.dropGradients();
    return first;
}

/// The update was not made, so the weights are those of the step before. Passes that the next step has run by now are
/// void afterwards.
Result<> Trainer::endBroken(const OpenStep &step)
{
    const OnNan onNan = m_job.configuration.train.onNan;
    BrokenStep broken;
    broken.number = step.number;
    broken.state = step.result.state;
    broken.inLoss = !std::isfinite(*step.result.loss);
    broken.microBatches = m_plan.accumulation;
    if (onNan == OnNan::Off) {
        const std::string text = broken.nameText();
        m_job.observer.event(EventKind::Nan, text, detailJson(broken, false), step.number);
        return fail(
            "{}. Under train.on_nan=off its update may have been made, so nothing is kept. Resume from the last "
            "checkpoint with {}.",
            text, kRemedy);
    }
    engine::Engine &engine = m_job.decoder.engine();
    engine.dropGradients();
    broken.first = findFirst(step.number);
    if (broken.first)
        broken.unit = engine.unitInfos()[static_cast<size_t>(broken.first->unit)].name;
    broken.isAtFloor = step.scalars.host().isAtFloor();
    const int64_t limit = m_job.configuration.train.skipLimit;
    const bool mayGoOn = onNan == OnNan::Skip && !broken.isOfWeights() && !broken.isAtFloor;
    const bool skips = mayGoOn && (limit == 0 || m_leftOutInRow < limit);
    const std::string text = describe(broken);
    m_job.observer.event(EventKind::Nan, text, detailJson(broken, skips), step.number);
    if (broken.isOfWeights())
        return fail("{}. Resume from a checkpoint in which they are in order, with {}.", text, kRemedy);
    if (skips) {
        ++m_leftOutInRow;
        if (m_plan.rank == 0) // all ranks know it
            m_job.report(
                control::WarningMessage{fmt::format("{}. The step was left out; the training goes on.", text)});
        return {};
    }
    const std::string kept = keepLastGood(step.number - 1 - m_leftOutInRow);
    if (mayGoOn)
        return fail(
            "{}. The {} steps before it were left out too, which is all that train.skip_limit allows. {} Resume "
            "with {}.",
            text, m_leftOutInRow, kept, kRemedy);
    return fail("{}. {} Resume with {}, or with {}.", text, kept, kRemedy,
                broken.isAtFloor ? "precision.compute=bf16" : "train.on_nan=skip");
}

/// Writes the checkpoint of the state after `step`, the last good one, whose weights are those at hand; returns what
/// became of it, as a sentence.
std::string Trainer::keepLastGood(int64_t step)
{
    if (step == 0)
        return "No step before it was good, so no checkpoint is kept.";
    waitForPending();
    m_done = std::max(step, m_checkpointed); // one of a step that was left out has the same weights
    if (auto written = checkpoint(); !written)
        return fmt::format("No checkpoint of step {}, the last good one, could be written: {}", step,
                           written.error().text);
    return fmt::format("The step was left out, and the checkpoint of step {}, with the last good weights, is in {}.",
                       m_done, m_job.checkpointer.pathOf(m_done).string());
}

} // namespace shardscope::train
