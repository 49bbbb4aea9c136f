// SPDX-License-Identifier: Apache-2.0
#include "app/worker/worker.h"

#include "app/worker/command_sources.h"
#include "app/worker/cpu_products.h"
#include "app/worker/failure_text.h"
#include "app/worker/job_store.h"
#include "app/worker/recording.h"
#include "app/worker/run_place.h"
#include "app/worker/setup.h"
#include "app/worker/status_keeper.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/config/configuration_file.h"
#include "core/pretrained/checkpoint_model.h"
#include "core/train/trainer.h"

#include <c10/cuda/CUDAFunctions.h>
#include <csignal>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <torch/torch.h>

namespace shardscope::worker {

namespace {

/// One rank from its set-up to its end. Members are destroyed in the reverse of their order: the communicator after the
/// decoder, the recorder after both.
class RankRun
{
public:
    RankRun(const Arguments &arguments, const RankEnvironment &environment, control::RankChannel &channel,
            SignalWatch *signals)
        : m_arguments(arguments)
        , m_environment(environment)
        , m_channel(channel)
        , m_signals(signals)
    {
    }
    tl::expected<int, Failure> run();

private:
    Result<> readInput();
    Result<> findPlace();
    Result<> openDevice();
    Result<int> train();
    train::JobIdentity identity() const;
    void report(const control::RankMessage &message);
    void lostRecording(const std::string &text);
    void logStep(const train::StepReport &report);
    control::StepFigures newestFigures(int64_t step) const;
    tl::expected<int, Failure> end(const tl::expected<int, Failure> &outcome);

    const Arguments &m_arguments;
    const RankEnvironment &m_environment;
    control::RankChannel &m_channel;
    SignalWatch *m_signals;

    Setup m_setup;
    c10::intrusive_ptr<c10d::Store> m_store;
    std::optional<train::RankExchange> m_exchange;
    std::optional<RunPlace> m_place;
    std::unique_ptr<StatusKeeper> m_keeper;       ///< of rank 0 without a supervisor
    std::optional<run::DatabasePlace> m_database; ///< of the recorder
    std::unique_ptr<collect::Recorder> m_recorder;
    std::unique_ptr<engine::Communicator> m_communicator;
    std::unique_ptr<model::Decoder> m_decoder;
    int64_t m_lastStep = 0; ///< whose values are known
};

/// Configuration and data: what a user can get wrong is refused before anything is made.
Result<> RankRun::readInput()
{
    auto setup = readSetup(m_arguments, m_environment);
    if (!setup)
        return tl::unexpected(setup.error());
    m_setup = std::move(*setup);
    if (m_environment.rank == 0) {
        for (const std::string &note : m_setup.run.notes)
            spdlog::info("{}", note);
        spdlog::info("{}", m_setup.dataset->description());
    }
    return {};
}

/// The run's folder and attempt: of the supervisor, or made by rank 0 once all ranks are there.
Result<> RankRun::findPlace()
{
    auto store = connectStore(m_environment);
    if (!store)
        return tl::unexpected(store.error());
    m_store = std::move(*store);
    if (m_signals)
        m_signals->ranksHaveJoined();
    m_exchange.emplace(m_store, m_environment.rank, m_environment.worldSize);
    if (m_environment.supervised) {
        auto place = supervisedPlace(m_arguments, m_environment);
        if (!place)
            return tl::unexpected(place.error());
        m_place = std::move(*place);
        return {};
    }
    Result<> made;
    if (m_environment.rank == 0) {
        auto own = makePlace(m_arguments, m_environment, m_setup.run.configuration);
        if (own) {
            m_place = std::move(own->place);
            m_keeper = std::make_unique<StatusKeeper>(m_place->folder, std::move(own->lock), m_place->attempt,
                                                      m_environment.worldSize, m_setup.run.configuration);
        } else {
            made = tl::unexpected(own.error());
        }
    }
    if (auto agreed = m_exchange->agree("run folder", made); !agreed)
        return agreed;
    return m_exchange->fromRoot("run place", m_place ? encodePlace(*m_place) : std::string())
        .and_then(decodePlace)
        .map([this](RunPlace place) { m_place = std::move(place); });
}

/// Recorder, device and process group, in this order: a recorder must be there before the device's context.
Result<> RankRun::openDevice()
{
    int64_t firstStep = 1;
    if (m_place->resumeFrom) {
        const auto manifest = files::CheckpointFolder::readManifest(*m_place->resumeFrom);
        if (!manifest)
            return tl::unexpected(manifest.error());
        firstStep = manifest->step + 1;
    }
    m_database = run::DatabasePlace::choose(m_place->folder.rankDatabase(m_place->attempt, m_environment.rank));
    if (!m_database->note().empty())
        spdlog::info("{}", m_database->note());
    auto recorder =
        openRecording(m_setup.run, m_setup.flopsPerToken, *m_place, m_environment, *m_database, m_setup.device,
                      firstStep, m_arguments.commandLine, [this](const std::string &text) { lostRecording(text); });
    if (!recorder)
        return tl::unexpected(recorder.error());
    m_recorder = std::move(*recorder);
    applyToLibTorch(m_setup);
    engine::Communicator::Options options;
    options.store = m_store;
    options.rank = m_environment.rank;
    options.worldSize = m_environment.worldSize;
    options.device = m_setup.device;
    auto communicator = engine::Communicator::create(options, *m_recorder);
    if (!communicator)
        return tl::unexpected(communicator.error());
    m_communicator = std::move(*communicator);
    config::RunConfiguration configuration = m_setup.run.configuration;
    if (configuration.offload.path.empty())
        configuration.offload.path = m_place->folder.attemptFolder(m_place->attempt).string();
    m_decoder = std::make_unique<model::Decoder>(m_setup.shape, configuration, *m_communicator, *m_recorder);
    m_recorder->onUnits(m_decoder->engine().unitInfos());
    return {};
}

train::JobIdentity RankRun::identity() const
{
    const config::RunConfiguration &configuration = m_setup.run.configuration;
    train::JobIdentity identity;
    identity.model = configuration.model.path.empty() ? configuration.model.preset : m_setup.shape.name;
    identity.configurationJson = config::toJson(configuration).dump();
    files::Expectation expected = pretrained::expectationOf(m_setup.shape, configuration);
    identity.data = expected.data;
    identity.shape = std::move(expected.shape);
    const auto &fingerprint = m_setup.dataset->fingerprint();
    identity.data.fingerprint = fmt::format("{}:{}", fingerprint.sizeBytes, fingerprint.xxh3);
    return identity;
}

void RankRun::report(const control::RankMessage &message)
{
    m_channel.send(message);
    if (const auto *warning = std::get_if<control::WarningMessage>(&message); warning && m_environment.rank == 0)
        spdlog::warn("{}", warning->text);
    if (const auto *checkpoint = std::get_if<control::CheckpointMessage>(&message)) {
        spdlog::info("Checkpoint of step {} in {}", checkpoint->step, checkpoint->path);
        if (m_keeper)
            m_keeper->checkpointWritten(checkpoint->step);
    }
}

/// A part of the recording is missing. From the recorder's thread, and at the end.
void RankRun::lostRecording(const std::string &text)
{
    m_channel.send(control::WarningMessage{.text = text, .recording = true});
    if (m_keeper)
        m_keeper->lostRecording(text);
}

void RankRun::logStep(const train::StepReport &report)
{
    m_lastStep = report.number;
    if (m_environment.rank == 0) {
        const double norm = report.result.gradientNorm.value_or(0);
        std::string line =
            fmt::format("step {}/{}  loss {:.4f}  gradient norm {:.3f}  learning rate {:.3g}  {}", report.number,
                        m_setup.run.configuration.train.steps, report.result.loss.value_or(0), norm,
                        report.result.learningRate, formatDuration(report.stepNs));
        if (report.result.lossScale)
            line += fmt::format("  loss scale {:g}", *report.result.lossScale);
        if (report.result.state != StepState::Ok)
            line += fmt::format("  {}", toText(report.result.state));
        if (report.result.validationLoss)
            line += fmt::format("  validation loss {:.4f}", *report.result.validationLoss);
        spdlog::info("{}", line);
    }
    if (m_keeper)
        m_keeper->stepDone(report);
}

/// The newest figures that the recorder has of this step or one before: with a device they come about a second late.
control::StepFigures RankRun::newestFigures(int64_t step) const
{
    static constexpr int64_t kRemembered = 64; // steps that the recorder answers for
    control::StepFigures newest;
    for (int64_t known = step; known > 0 && known > step - kRemembered && !newest.ofNs; --known) {
        const collect::StepFigures figures = m_recorder->figuresOf(known);
        if (!newest.peakAllocatedBytes)
            newest.peakAllocatedBytes = figures.peakAllocatedBytes;
        newest.exposedCommunicationNs = figures.exposedCommunicationNs;
        newest.ofNs = figures.exposedCommunicationNs ? figures.wallNs : std::nullopt;
    }
    return newest;
}

Result<int> RankRun::train()
{
    std::unique_ptr<train::CommandSource> commands;
    if (m_signals)
        commands = std::make_unique<SignalCommands>(*m_signals);
    else
        commands = std::make_unique<SupervisorCommands>(m_channel);
    const config::RunConfiguration &configuration = m_setup.run.configuration;
    train::Checkpointer checkpointer(
        files::CheckpointFolder(m_place->folder.checkpointsFolder()), identity(),
        {configuration.checkpoint.keep, configuration.checkpoint.format, configuration.checkpoint.asynchronous},
        *m_exchange);
    train::Trainer trainer({configuration, *m_setup.dataset, *m_decoder, *m_recorder, *commands, checkpointer,
                            m_setup.deviceName, [this](const auto &message) { report(message); },
                            [this](int64_t step) { return newestFigures(step); },
                            [this](const auto &step) { logStep(step); }});
    if (m_place->resumeFrom) {
        if (auto resumed = trainer.resume(*m_place->resumeFrom); !resumed)
            return tl::unexpected(resumed.error());
        spdlog::info("Going on from step {} of {}", trainer.stepsDone(), m_place->resumeFrom->string());
    } else if (m_setup.weights) {
        if (auto loaded = trainer.startFrom(*m_setup.weights); !loaded)
            return tl::unexpected(loaded.error());
        if (m_environment.rank == 0)
            spdlog::info("Going on from the weights of {}", configuration.model.path);
    } else {
        trainer.start();
    }
    for (const std::string &warning : m_setup.warnings) {
        if (m_environment.rank == 0)
            spdlog::warn("{}", warning);
    }
    if (m_keeper)
        m_keeper->running(trainer.stepsDone());
    const auto ended = trainer.run();
    if (!ended)
        return tl::unexpected(ended.error());
    m_communicator->barrier();
    // What the device has not done when the recording is closed would be lost, and an error of it not be seen.
    if (m_setup.device.is_cuda())
        torch::cuda::synchronize(m_setup.device.index());
    const bool interrupted = *ended == train::Trainer::End::Stopped && m_signals && m_signals->interrupted();
    return interrupted ? SignalWatch::kInterruptedExitCode : kExitDone;
}

/// Closes the recording and says how it ended, whatever the outcome.
tl::expected<int, Failure> RankRun::end(const tl::expected<int, Failure> &outcome)
{
    const int exitCode = outcome ? *outcome : outcome.error().exitCode;
    if (!outcome) {
        // The supervisor ends all ranks by SIGTERM half a second after the first message: this one ends by itself, with
        // a recording that is whole. It is killed where it takes too long.
        if (m_environment.supervised)
            std::signal(SIGTERM, SIG_IGN);
        m_channel.send(failureMessage(outcome.error())); // before anything that may wait for a rank that is gone
        if (m_communicator)
            m_communicator->abort();
    }
    if (m_recorder) {
        if (auto closed = m_recorder->close(exitCode).and_then([this] { return m_database->moveHome(); }); !closed) {
            spdlog::warn("{}", closed.error().text);
            lostRecording(closed.error().text);
        }
        // With a device the figures of the last steps come about a second late: now they are all there.
        const control::StepFigures figures = newestFigures(m_lastStep);
        if (m_keeper)
            m_keeper->figures(figures);
        if (outcome)
            m_channel.send(figures);
    }
    if (m_keeper && outcome) {
        m_keeper->finish(RunState::Done);
    } else if (m_keeper) {
        // Who has only lost a peer can't say which one failed, and why.
        run::RunFailure failure{std::nullopt, std::nullopt, std::nullopt, outcome.error().text};
        if (!outcome.error().peerLost) {
            failure.rank = m_environment.rank;
            failure.exitCode = exitCode;
        }
        m_keeper->finish(RunState::Failed, std::move(failure));
    }
    m_keeper.reset(); // writes the last state, and lets go of the lock
    return outcome;
}

tl::expected<int, Failure> RankRun::run()
{
    const auto misused = [](const Error &error) { return Failure{error.text, kExitMisused}; };
    const auto failed = [](const Error &error) { return Failure{error.text, kExitFailed}; };
    if (auto ready = readInput().and_then([&] { return findPlace(); }).map_error(misused); !ready)
        return tl::unexpected(ready.error());
    try {
        return end(openDevice().and_then([&] { return train(); }).map_error(failed));
    } catch (const std::exception &error) {
        const Failure failure{explainException(error, m_environment.rank), kExitFailed, isPeerLost(error)};
        if (m_recorder)
            m_recorder->event(isOutOfMemory(error) ? EventKind::OutOfMemory : EventKind::Death, failure.text, {}, {});
        return end(tl::unexpected(failure));
    }
}

} // namespace

control::FailureMessage failureMessage(const Failure &failure)
{
    return {failure.text, failure.exitCode, failure.peerLost, realtimeNs()};
}

tl::expected<int, Failure> runRank(const Arguments &arguments, const RankEnvironment &environment,
                                   control::RankChannel &channel, SignalWatch *signals)
{
    auto run = std::make_unique<RankRun>(arguments, environment, channel, signals);
    auto outcome = run->run();
    // Destructors of the engine and of Gloo join threads that may wait for a rank that hangs: the process ends instead.
    if (!outcome)
        static_cast<void>(run.release());
    return outcome;
}

} // namespace shardscope::worker
