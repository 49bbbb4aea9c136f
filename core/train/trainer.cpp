// SPDX-License-Identifier: Apache-2.0
#include "core/train/trainer.h"

#include "core/model/pretrained_weights.h"

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/config/configuration_file.h"
#include "core/train/reconfigure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace shardscope::train {

using observe::SpanInfo;
using observe::SpanScope;

static BatchPlan planOf(const TrainerJob &job)
{
    engine::Communicator &communicator = job.decoder.engine().communicator();
    return {communicator.worldSize(), communicator.rank(), job.configuration.train.microBatch,
            job.configuration.train.accumulation};
}

Trainer::Trainer(TrainerJob job)
    : m_job(std::move(job))
    , m_inForce(m_job.configuration)
    , m_plan(planOf(m_job))
    , m_loader(m_job.dataset, m_job.decoder.engine().device())
    , m_validator(m_job.dataset, m_plan)
    , m_schedule{m_job.configuration.optimizer.learningRate, m_job.configuration.optimizer.minLearningRate,
                 m_job.configuration.optimizer.warmupSteps, m_job.configuration.train.steps}
{
}

void Trainer::start()
{
    m_job.decoder.engine().initialize(m_job.configuration.train.seed);
}

Result<> Trainer::startFrom(const pretrained::WeightFolder &folder)
{
    engine::Engine &engine = m_job.decoder.engine();
    engine.initializeAdapters(m_job.configuration.train.seed);
    return model::loadWeights(engine, folder);
}

Result<> Trainer::resume(const std::filesystem::path &checkpoint)
{
    const auto state = m_job.checkpointer.read(m_job.decoder.engine(), checkpoint);
    if (!state)
        return tl::unexpected(state.error());
    m_done = m_checkpointed = m_plan.stepsBefore = state->step;
    m_plan.samplesBefore = state->nextSample;
    if (state->scaler)
        m_job.decoder.engine().restoreScaler(
            {state->scaler->scale, state->scaler->growthTracker, state->scaler->skippedSteps});
    return {};
}

Result<Trainer::End> Trainer::run()
{
    const int64_t steps = m_job.configuration.train.steps;
    m_job.report(control::ReadyMessage{::getpid(), m_done + 1, steps, m_job.deviceName});
    while (m_done < steps) {
        const auto next = obeyCommands();
        if (!next)
            return tl::unexpected(next.error());
        if (*next == Next::Stop)
            return End::Stopped;
        if (auto done = runStep().and_then([&] { return checkpointIfDue(); }); !done)
            return tl::unexpected(done.error());
        tellOutcome(m_job.checkpointer.poll());
    }
    if (auto settled = settle(); !settled)
        return tl::unexpected(settled.error());
    waitForPending();
    const CommandSet asked = m_commands.takeDue(std::numeric_limits<int64_t>::max()); // too late to come into force
    const bool lacking = m_inForce.checkpoint.atEnd && m_checkpointed != m_done;
    if (lacking || asked.checkpoint || asked.stop) {
        if (auto written = obeyCheckpoint(asked.checkpoint, true); !written)
            return tl::unexpected(written.error());
    }
    return End::Done;
}

/// Before a step: what is in force from it on, on all ranks alike.
Result<Trainer::Next> Trainer::obeyCommands()
{
    const CommandSet due = m_commands.takeDue(m_done + 1);
    if (!due.any())
        return Next::Step;
    if (due.change > 0) {
        if (auto taken = takeUp(due.change); !taken)
            return tl::unexpected(taken.error());
    }
    if (due.checkpoint || due.stop) {
        if (auto written = obeyCheckpoint(due.checkpoint, due.stop); !written)
            return tl::unexpected(written.error());
    }
    if (due.stop)
        return Next::Stop;
    return due.pause ? pause() : Next::Step;
}

Result<Trainer::Next> Trainer::pause()
{
    // The word of the step before has been heard by all; a stop in it would wait for an unpause that never comes.
    if (auto settled = settle(); !settled)
        return tl::unexpected(settled.error());
    if (m_commands.stopIsComing())
        return Next::Step;
    waitForPending(); // nobody goes on with it during the pause
    m_job.observer.event(EventKind::Command, fmt::format("Paused after step {}", m_done), {}, m_done);
    for (;;) {
        const control::Order order = m_job.commands.waitWhilePaused(m_done);
        const control::Command command = order.command;
        if (command == control::Command::Unpause)
            break;
        if (command == control::Command::Pause)
            continue;
        if (command == control::Command::Set) {
            if (auto taken = takeUp(order.change); !taken)
                return tl::unexpected(taken.error());
            continue;
        }
        const bool stop = command == control::Command::Stop;
        if (auto written = obeyCheckpoint(!stop, stop); !written)
            return tl::unexpected(written.error());
        if (stop)
            return Next::Stop;
    }
    m_job.observer.event(EventKind::Command, fmt::format("Going on after step {}", m_done), {}, m_done);
    return Next::Step;
}

/// A change of the configuration, in force from the next step on.
Result<> Trainer::takeUp(int64_t change)
{
    // What was begun under the old one ends under it.
    if (auto settled = settle(); !settled)
        return tl::unexpected(settled.error());
    const auto told = m_job.commands.change(change);
    if (!told)
        return tl::unexpected(told.error());
    auto configuration = reconfigure(*told, m_done + 1, m_job.decoder.engine(), m_job.observer);
    if (!configuration)
        return tl::unexpected(configuration.error());
    m_inForce = std::move(*configuration);
    m_schedule.peak = m_inForce.optimizer.learningRate;
    m_schedule.minimum = m_inForce.optimizer.minLearningRate;
    m_job.checkpointer.setKeep(m_inForce.checkpoint.keep);
    m_job.checkpointer.setConfiguration(config::toJson(m_inForce).dump());
    m_job.report(control::ConfiguredMessage{change, m_done + 1});
    return {};
}

/// All micro-batches of a step; returns this rank's part of the mean loss. check: null, or what looks at them.
at::Tensor Trainer::accumulateGradients(OpenStep &step, model::NumberCheck *check)
{
    step.result.tokens = 0;
    const auto &train = m_job.configuration.train;
    // Losses are summed and divided by the global batch's counted tokens, so that micro-batches and ranks weigh by
    // theirs. That is all of them: training() masks no target.
    const double lossScale = 1.0 / static_cast<double>(m_plan.globalBatch() * train.sequenceLength);
    at::Tensor loss;
    for (int64_t micro = 0; micro < m_plan.accumulation; ++micro) {
        Batch batch;
        {
            const SpanScope span(m_job.observer, SpanInfo{"input", SpanCategory::Host, Phase::Input});
            const observe::MemoryScope memory(m_job.observer, {MemoryCategory::Input});
            batch = m_loader.training(m_plan.firstSample(step.number - 1, micro), m_plan.microBatch);
        }
        step.result.tokens += batch.countedTokens;
        if (check)
            check->beginMicroBatch(micro);
        const at::Tensor part = m_job.decoder.forwardBackward(batch.tokens_BT, batch.targets_BT, lossScale,
                                                              micro + 1 == m_plan.accumulation, check);
        const observe::MemoryScope memory(m_job.observer, {MemoryCategory::Temporary});
        loss = loss.defined() ? loss + part : part;
    }
    return loss;
}

Result<> Trainer::runStep()
{
    engine::Engine &engine = m_job.decoder.engine();
    OpenStep step;
    step.number = m_done + 1;
    step.began = StepMark::now(engine.device());
    step.result.learningRate = m_schedule.at(step.number);
    m_job.observer.stepBegan(step.number);
    // Nothing is to be known of the whole gradient before the update where nothing is clipped and nobody asks whether
    // it is finite, as fp16's scaler does.
    const bool isFp16 = m_inForce.precision.compute == Precision::Fp16;
    if (m_inForce.optimizer.clipNorm == 0 && m_job.configuration.train.onNan == OnNan::Off && !isFp16)
        engine.expectUpdate(step.result.learningRate);
    const at::Tensor loss = accumulateGradients(step);
    const CommandWords words = toWords(m_job.commands.poll());
    step.scalars = engine.reduceScalars(loss, words);
    // The device is still at it. The values of the step before are there by now, or soon: nothing runs dry.
    const auto before = settle();
    if (!before)
        return tl::unexpected(before.error());
    if (*before == Settled::PassesAreVoid)
        step.scalars = engine.reduceScalars(accumulateGradients(step), words);
    engine.optimizerStep(step.result.learningRate, m_inForce.optimizer.clipNorm, step.scalars);
    step.ended = StepMark::now(engine.device()); // what follows is not of the step: it would spoil its tokens a second
    if (validationDue(step.number)) {
        const SpanScope span(m_job.observer, SpanInfo{"validate", SpanCategory::Host, Phase::Validate});
        step.result.validationLoss = m_validator.run(m_job.decoder, m_loader);
    }
    m_done = step.number;
    if (!engine.device().is_cuda()) {
        takeValues(step);
        m_job.observer.stepEnded(step.result);
        return finish(step);
    }
    m_job.observer.stepEnded(step.result);
    m_open = std::move(step);
    return {};
}

/// Reads the values of the step that is still open, if there is one, and ends it.
Result<Trainer::Settled> Trainer::settle()
{
    if (!m_open)
        return Settled::Well;
    OpenStep step = std::move(*m_open);
    m_open.reset();
    takeValues(step);
    m_job.observer.stepValues(step.number, step.result);
    return finish(step).map([&] { return isBroken(step) ? Settled::PassesAreVoid : Settled::Well; });
}

void Trainer::takeValues(OpenStep &step)
{
    const engine::StepScalars::Values values = step.scalars.host();
    const double norm = values.gradientNorm();
    step.result.loss = values.lossSum;
    step.result.gradientNorm = norm;
    if (values.scale > 0)
        step.result.lossScale = values.scale;
    if (values.overflowed())
        step.result.state = StepState::Skipped;
    else if (std::isnan(values.lossSum) || std::isnan(norm))
        step.result.state = StepState::Nan;
    else if (std::isinf(values.lossSum) || std::isinf(norm))
        step.result.state = StepState::Inf;
    m_commands.heard(step.number, fromWords(values.words));
}

/// The values are known: tells of them, and sees to a step that is broken.
Result<> Trainer::finish(const OpenStep &step)
{
    const control::StepFigures figures = m_job.figures ? m_job.figures(step.number) : control::StepFigures{};
    const StepReport report{step.number, step.result, step.ended.nsSince(step.began), figures};
    if (m_job.stepDone)
        m_job.stepDone(report);
    m_job.report(control::StepMessage{step.number, m_job.configuration.train.steps, step.result.loss,
                                      step.result.validationLoss, step.result.tokens, report.stepNs, figures,
                                      realtimeNs(), step.result.state, step.result.lossScale});
    if (step.result.state == StepState::Skipped)
        m_job.observer.event(EventKind::Nan,
                             fmt::format("Step {} is skipped: a gradient passed what fp16 holds at a loss scale of {}",
                                         step.number, *step.result.lossScale),
                             {}, step.number);
    if (step.result.state == StepState::Ok)
        m_leftOutInRow = 0;
    return isBroken(step) ? endBroken(step) : Result<>{};
}

bool Trainer::validationDue(int64_t step) const
{
    const auto &train = m_job.configuration.train;
    return step == train.steps || (train.validateEvery > 0 && step % train.validateEvery == 0);
}

Result<> Trainer::checkpointIfDue()
{
    const int64_t every = m_inForce.checkpoint.every;
    return every > 0 && m_done % every == 0 ? checkpointAndGoOn() : Result<>{};
}

LoopState Trainer::loopState() const
{
    LoopState state{m_done, m_plan.samplesAfter(m_done), std::nullopt};
    if (const auto scaler = m_job.decoder.engine().scalerState())
        state.scaler = {scaler->scale, scaler->growthTracker, scaler->skippedSteps};
    return state;
}

/// Of a command, in force now: no earlier checkpoint that is still on its way answers it.
Result<> Trainer::obeyCheckpoint(bool ordered, bool stops)
{
    waitForPending();
    if (ordered)
        m_ordered = m_done;
    return stops ? checkpoint() : checkpointAndGoOn();
}

/// A full disk must not end a run whose weights are in order: it is a warning, and the next checkpoint may fit.
Result<> Trainer::checkpointAndGoOn()
{
    if (auto settled = settle(); !settled)
        return tl::unexpected(settled.error());
    if (m_job.checkpointer.options().asynchronous)
        beginCheckpoint();
    else if (auto written = checkpoint(); !written)
        tellLack(m_done, written.error());
    return {};
}

/// The state after the steps that are done, on the disk when this returns.
Result<> Trainer::checkpoint()
{
    if (auto settled = settle(); !settled)
        return tl::unexpected(settled.error());
    waitForPending();
    if (m_checkpointed != m_done)
        return writeCheckpoint();
    tellCheckpoint(m_done, m_job.checkpointer.pathOf(m_done));
    return {};
}

Result<> Trainer::writeCheckpoint()
{
    const int64_t beganNs = monotonicNs();
    {
        const SpanScope span(m_job.observer, SpanInfo{"checkpoint", SpanCategory::Host, Phase::Checkpoint});
        const observe::MemoryScope memory(m_job.observer, {MemoryCategory::Temporary});
        if (auto written = m_job.checkpointer.write(m_job.decoder.engine(), loopState()); !written)
            return tl::unexpected(written.error());
    }
    tellWritten(m_done, monotonicNs() - beganNs);
    return {};
}

/// Copies the state and goes on; poll() tells how it ended, some steps later.
void Trainer::beginCheckpoint()
{
    waitForPending(); // two at a time would need the host memory twice
    if (m_checkpointed == m_done) {
        tellCheckpoint(m_done, m_job.checkpointer.pathOf(m_done));
        return;
    }
    std::string unusual;
    {
        const SpanScope span(m_job.observer, SpanInfo{"checkpoint copy", SpanCategory::Host, Phase::Checkpoint});
        const observe::MemoryScope memory(m_job.observer, {MemoryCategory::Temporary});
        unusual = m_job.checkpointer.begin(m_job.decoder.engine(), loopState());
    }
    if (!unusual.empty())
        m_job.observer.event(EventKind::Warning, unusual, {}, m_done);
}

void Trainer::waitForPending()
{
    if (!m_job.checkpointer.isPending())
        return;
    const int64_t beganNs = monotonicNs();
    {
        const SpanScope span(m_job.observer, SpanInfo{"checkpoint wait", SpanCategory::Host, Phase::Checkpoint});
        tellOutcome(m_job.checkpointer.finish());
    }
    static constexpr int64_t kWorthTellingNs = 100'000'000;
    if (const int64_t waitedNs = monotonicNs() - beganNs; waitedNs > kWorthTellingNs)
        m_job.observer.event(EventKind::Checkpoint,
                             fmt::format("Waited {} for a checkpoint that was being written", formatDuration(waitedNs)),
                             {}, m_done);
}

void Trainer::tellOutcome(const std::optional<Checkpointer::Outcome> &outcome)
{
    if (!outcome)
        return;
    if (outcome->result)
        tellWritten(outcome->step, outcome->durationNs);
    else
        tellLack(outcome->step, outcome->result.error());
}

void Trainer::tellWritten(int64_t step, int64_t durationNs)
{
    m_checkpointed = step;
    const std::filesystem::path path = m_job.checkpointer.pathOf(step);
    const nlohmann::json detail = {{"step", step}, {"path", path.string()}, {"duration_ns", durationNs}};
    m_job.observer.event(EventKind::Checkpoint,
                         fmt::format("Checkpoint of step {} in {}", step, formatDuration(durationNs)),
                         detail.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), step);
    tellCheckpoint(step, path);
}

void Trainer::tellCheckpoint(int64_t step, const std::filesystem::path &path)
{
    if (m_plan.rank == 0)
        m_job.report(control::CheckpointMessage{step, path.string(), takeOrder(step)});
}

/// Whether the checkpoint of this step is what a command waits for; true once.
bool Trainer::takeOrder(int64_t step)
{
    const bool ordered = m_ordered == step;
    if (ordered)
        m_ordered.reset();
    return ordered;
}

void Trainer::tellLack(int64_t step, const Error &error)
{
    m_job.observer.event(EventKind::Warning, error.text, {}, step);
    m_job.report(control::WarningMessage{
        fmt::format("No checkpoint of step {}; the training goes on, and earlier checkpoints are whole. {}", step,
                    error.text),
        true, takeOrder(step)});
}

} // namespace shardscope::train
