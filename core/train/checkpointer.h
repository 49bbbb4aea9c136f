// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/engine/engine.h"
#include "core/files/checkpoint_folder.h"
#include "core/train/rank_exchange.h"

#include <filesystem>
#include <string>

namespace shardscope::train {

/// What a checkpoint says of the job beside its tensors.
struct JobIdentity
{
    std::string model;
    std::string configurationJson;
    files::DataPosition data; ///< nextSample is filled in when one is written
};

/// Writes and reads sharded checkpoints of an engine. All ranks call the same; all get the same result: one rank's
/// error is every rank's.
class Checkpointer
{
public:
    Checkpointer(files::CheckpointFolder folder, JobIdentity identity, int64_t keep, RankExchange &exchange);

    /// The state after `step` steps, as checkpoints/step-<step>; older ones beyond `keep` are deleted. Waits for the
    /// device. After an error the earlier checkpoints are whole and nothing is left of this one.
    Result<std::filesystem::path> write(engine::Engine &engine, int64_t step);

    void setKeep(int64_t keep) { m_keep = keep; }
    std::filesystem::path pathOf(int64_t step) const { return m_folder.pathOf(step); }

    /// Compares everything, then reads. Returns the number of steps that are done.
    Result<int64_t> read(engine::Engine &engine, const std::filesystem::path &checkpoint);

private:
    files::Manifest describe(engine::Engine &engine, int64_t step) const;
    Result<files::FileEntry> writeRankFile(engine::Engine &engine, int64_t step) const;
    Result<> commit(engine::Engine &engine, int64_t step, const std::vector<std::string> &fileEntries) const;
    Result<files::Manifest> checkedManifest(engine::Engine &engine, const std::filesystem::path &checkpoint) const;

    files::CheckpointFolder m_folder;
    JobIdentity m_identity;
    int64_t m_keep;
    RankExchange &m_exchange;
};

} // namespace shardscope::train
