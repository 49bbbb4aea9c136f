// SPDX-License-Identifier: Apache-2.0
#include "tests/train/training_job.h"

#include "core/config/configuration_file.h"
#include "core/pretrained/checkpoint_model.h"

#include <ATen/Parallel.h>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace shardscope::testing {

namespace {

class ScriptedCommands final : public train::CommandSource
{
public:
    ScriptedCommands(const Script &script, int rank)
        : m_script(script)
        , m_rank(rank)
    {
    }
    train::CommandSet poll() override
    {
        ++m_polls;
        return m_rank == 0 && m_script.poll ? m_script.poll(m_polls) : train::CommandSet{};
    }
    Result<control::ConfigurationChange> change(int64_t number) override { return m_script.changes.at(number); }
    control::Order waitWhilePaused(int64_t step) override
    {
        if (m_rank == 0 && m_script.pausedAfter)
            m_script.pausedAfter->push_back(step);
        return m_script.whilePaused.at(m_taken++);
    }

private:
    const Script &m_script;
    int m_rank;
    int64_t m_polls = 0;
    size_t m_taken = 0;
};

class EventKeeper final : public observe::Observer
{
public:
    EventKeeper(int rank, std::mutex &mutex, std::vector<JobEvent> &events)
        : m_rank(rank)
        , m_mutex(mutex)
        , m_events(events)
    {
    }
    void event(EventKind kind, std::string_view text, std::string_view detailJson, std::optional<int64_t> step) override
    {
        const std::lock_guard lock(m_mutex);
        m_events.push_back({m_rank, kind, std::string(text), std::string(detailJson), step});
    }

private:
    int m_rank;
    std::mutex &m_mutex;
    std::vector<JobEvent> &m_events;
};

} // namespace

std::vector<double> JobOutcome::losses() const
{
    std::vector<double> all;
    for (const train::StepReport &step : steps)
        all.push_back(step.result.loss.value());
    return all;
}

std::vector<double> JobOutcome::norms() const
{
    std::vector<double> all;
    for (const train::StepReport &step : steps)
        all.push_back(step.result.gradientNorm.value());
    return all;
}

/// Text with some structure, so that there is something to learn: words of a small vocabulary in a fixed pseudo-random
/// order.
TrainingJob::TrainingJob()
{
    std::ofstream text(m_folder.path() / "text.txt");
    uint32_t state = 12345;
    for (int word = 0; word < 8000; ++word) {
        state = state * 1664525 + 1013904223;
        text << "shard" << (state >> 24) % 37 << (word % 11 == 0 ? "\n" : " ");
    }
}

config::RunConfiguration TrainingJob::configurationFor(int worldSize, int64_t accumulation)
{
    config::RunConfiguration configuration;
    configuration.model.preset = "tiny";
    configuration.train.steps = 20;
    configuration.train.globalBatch = 8;
    configuration.train.accumulation = accumulation;
    configuration.train.microBatch = 8 / worldSize / accumulation;
    configuration.train.sequenceLength = 32;
    configuration.optimizer.minLearningRate = 1e-4;
    configuration.optimizer.warmupSteps = 3;
    configuration.data.validation = 0.1;
    configuration.parallel.ranks = worldSize;
    return configuration;
}

shapes::ModelShape TrainingJob::shape()
{
    shapes::ModelShape shape = shapes::presetShape("tiny").value();
    shape.layers = 2;
    return shape;
}

data::Dataset TrainingJob::dataset(const config::RunConfiguration &configuration) const
{
    data::DatasetOptions options;
    options.path = m_folder.path() / "text.txt";
    options.validationShare = configuration.data.validation;
    options.sequenceLength = configuration.train.sequenceLength;
    options.vocabulary = shape().vocabulary;
    options.seed = configuration.train.seed;
    return data::Dataset::open(options).value();
}

JobOutcome TrainingJob::run(const JobOptions &options) const
{
    const auto store = c10::make_intrusive<c10d::HashStore>();
    const data::Dataset dataset = this->dataset(options.configuration);
    JobOutcome outcome;
    outcome.ends.resize(static_cast<size_t>(options.worldSize), fail("This rank never ended."));
    std::mutex mutex;
    const auto runRank = [&](int rank) {
        at::set_num_threads(1);
        EventKeeper observer(rank, mutex, outcome.events);
        auto communicator = engine::Communicator::create(
            {store, rank, options.worldSize, at::kCPU, std::chrono::seconds(60)}, observer);
        if (!communicator)
            throw std::runtime_error(communicator.error().text);
        model::Decoder decoder(shape(), options.configuration, **communicator, observer);
        train::RankExchange exchange(store, rank, options.worldSize);
        train::JobIdentity identity;
        identity.model = "tiny";
        identity.configurationJson = config::toJson(options.configuration).dump();
        identity.data = {0, options.configuration.train.globalBatch, options.configuration.train.seed,
                         dataset.fingerprint().xxh3};
        identity.shape = pretrained::shapeNumbers(shape(), options.configuration);
        const auto &checkpoint = options.configuration.checkpoint;
        train::Checkpointer checkpointer(
            files::CheckpointFolder(options.checkpointsOfRank ? options.checkpointsOfRank(rank) : checkpoints()),
            identity, {checkpoint.keep, checkpoint.format, checkpoint.asynchronous}, exchange);
        ScriptedCommands commands(options.script, rank);
        train::Trainer trainer({options.configuration, dataset, decoder, observer, commands, checkpointer, "cpu",
                                [&](const control::RankMessage &message) {
                                    if (rank == 0)
                                        outcome.messages.push_back(message);
                                },
                                nullptr,
                                [&](const train::StepReport &step) {
                                    if (rank == 0)
                                        outcome.steps.push_back(step);
                                    if (options.stepDone)
                                        options.stepDone(decoder, step.number);
                                }});
        Result<> ready;
        if (options.beforeResume)
            options.beforeResume(decoder);
        if (options.resumeFrom)
            ready = trainer.resume(*options.resumeFrom);
        else if (options.weights)
            ready = trainer.startFrom(*options.weights);
        else
            trainer.start();
        if (options.prepare)
            options.prepare(decoder);
        auto &end = outcome.ends[static_cast<size_t>(rank)];
        if (ready)
            end = trainer.run();
        else
            end = tl::unexpected(ready.error());
        (*communicator)->barrier();
    };
    std::vector<std::thread> threads;
    for (int rank = 1; rank < options.worldSize; ++rank)
        threads.emplace_back(runRank, rank);
    runRank(0);
    for (std::thread &thread : threads)
        thread.join();
    return outcome;
}

} // namespace shardscope::testing
