// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/train/checkpoint_identity.h"
#include "core/train/pending_checkpoint.h"

#include <filesystem>
#include <memory>
#include <optional>

namespace shardscope::train {

struct CheckpointOptions
{
    int64_t keep = 2; ///< whole ones that are left after a new one
    CheckpointFormat format = CheckpointFormat::Sharded;
    bool asynchronous = false; ///< begin() and poll() instead of write()
};

/// Writes and reads checkpoints of an engine. All ranks call the same; all get the same result: one rank's error is
/// every rank's. After an error the earlier checkpoints are whole and nothing is left of the new one.
class Checkpointer
{
public:
    Checkpointer(files::CheckpointFolder folder, JobIdentity identity, CheckpointOptions options,
                 RankExchange &exchange);

    const CheckpointOptions &options() const { return m_options; }
    void setKeep(int64_t keep) { m_options.keep = keep; }
    /// The configuration in force, an object in JSON, that later checkpoints carry.
    void setConfiguration(std::string json) { m_identity.configurationJson = std::move(json); }
    std::filesystem::path pathOf(int64_t step) const { return m_folder.pathOf(step); }

    /// The state after `state.step` steps, as checkpoints/step-<step>; older ones beyond `keep` are deleted. Waits for
    /// the device and the disk. None may be pending.
    Result<std::filesystem::path> write(engine::Engine &engine, const LoopState &state);

    /// A checkpoint that was begun, and how it ended.
    struct Outcome
    {
        int64_t step = 0;
        int64_t durationNs = 0; ///< from begin() until this rank learned of it
        Result<> result;
    };
    /// Copies the state to host memory in the order of the device's work and returns; the rest happens behind the
    /// training. None may be pending. Returns what was unusual ("" as a rule): where host memory lacks for the copy,
    /// the state is written here and now.
    std::string begin(engine::Engine &engine, const LoopState &state);
    bool isPending() const { return m_pending != nullptr; }
    /// Between two steps: goes on with what is pending, without a wait. Its outcome, once.
    std::optional<Outcome> poll();
    /// Waits for what is pending; nothing where nothing is. Ranks that polled it before have their outcome already.
    std::optional<Outcome> finish();

    /// Compares everything and checks all that it will read, then reads. Nothing was touched when it fails before. The
    /// ranks, strategy, buckets and dtypes that wrote it may be others. Returns where the training goes on.
    Result<LoopState> read(engine::Engine &engine, const std::filesystem::path &checkpoint);

private:
    CheckpointPlan planOf(engine::Engine &engine, const StateShards &shards, const LoopState &state) const;
    Result<std::string> writePart(engine::Engine &engine, const StateShards &shards, const CheckpointPlan &plan) const;
    Result<> check(const StateShards &shards, std::string_view optimizer, Result<files::CheckpointReader> &reader,
                   const std::filesystem::path &checkpoint) const;
    Outcome outcomeOf(Result<> result);

    files::CheckpointFolder m_folder;
    JobIdentity m_identity;
    CheckpointOptions m_options;
    RankExchange &m_exchange;
    std::unique_ptr<PendingCheckpoint> m_pending;
    int64_t m_begun = 0;
    int64_t m_begunNs = 0; ///< CLOCK_MONOTONIC
};

} // namespace shardscope::train
