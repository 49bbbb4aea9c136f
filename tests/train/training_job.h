// SPDX-License-Identifier: Apache-2.0
// A whole training job in this process: a Trainer a rank, each on a thread of its own, over real Gloo and real text.
#pragma once

#include "core/train/trainer.h"
#include "tests/files/temporary_folder.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace shardscope::testing {

/// Commands that a test gives: what rank 0 is told before each step, and what all are told while paused.
struct Script
{
    std::function<train::CommandSet(int64_t poll)> poll; ///< the first poll is 1; of rank 0
    std::vector<control::Order> whilePaused;             ///< in order
    std::map<int64_t, control::ConfigurationChange> changes = {};
    std::vector<int64_t> *pausedAfter = nullptr; ///< filled by rank 0
};

struct JobOptions
{
    int worldSize = 1;
    config::RunConfiguration configuration;            ///< micro_batch and accumulation are definite
    const pretrained::WeightFolder *weights = nullptr; ///< to begin with; else fresh ones
    std::optional<std::filesystem::path> resumeFrom;
    Script script;
    std::function<std::filesystem::path(int rank)> checkpointsOfRank; ///< empty: the same folder for all
    std::function<void(model::Decoder &)> beforeResume;               ///< called on each rank
    /// Called on each rank with the weights in place, before the first step.
    std::function<void(model::Decoder &)> prepare;
    /// Called on each rank after each step (CPU: its update is done), with the step's number; the first is 1.
    std::function<void(model::Decoder &, int64_t step)> stepDone;
};

/// What an observer was told of.
struct JobEvent
{
    int rank = 0;
    EventKind kind = EventKind::Warning;
    std::string text;
    std::string detailJson;
    std::optional<int64_t> step;
};

/// What rank 0 saw.
struct JobOutcome
{
    std::vector<JobEvent> events; ///< of all ranks
    std::vector<train::StepReport> steps;
    std::vector<control::RankMessage> messages;
    std::vector<Result<train::Trainer::End>> ends; ///< of each rank
    std::vector<double> losses() const;
    std::vector<double> norms() const;
};

class TrainingJob
{
public:
    TrainingJob();
    /// A small decoder's configuration: 8 sequences of 32 tokens a step on all ranks together.
    static config::RunConfiguration configurationFor(int worldSize, int64_t accumulation = 1);
    JobOutcome run(const JobOptions &options) const;

    std::filesystem::path folder() const { return m_folder.path(); }
    std::filesystem::path checkpoints() const { return m_folder.path() / "checkpoints"; }
    static shapes::ModelShape shape();
    data::Dataset dataset(const config::RunConfiguration &configuration) const;

private:
    TemporaryFolder m_folder;
};

} // namespace shardscope::testing
