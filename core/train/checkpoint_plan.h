// SPDX-License-Identifier: Apache-2.0
// What both ways of writing a checkpoint (at once, behind the training) have in common.
#pragma once

#include "core/files/checkpoint_folder.h"
#include "core/files/checkpoint_part.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::train {

/// A checkpoint that is to be written: all of its manifest but the id and the files.
struct CheckpointPlan
{
    files::CheckpointFolder folder;
    files::Manifest manifest; ///< `buckets` as the job has them
    int64_t keep = 2;
    int rank = 0;

    int64_t step() const { return manifest.step; }
    std::filesystem::path path() const { return folder.pathOf(step()); }
    files::PartPlan part() const { return {{manifest.id, step(), rank}, manifest.format, manifest.buckets}; }
};

/// A new id: no two checkpoints have the same.
std::string newCheckpointId();

/// Rank 0, before any rank writes: the folder, and the files that all write together.
Result<> beginCheckpoint(const CheckpointPlan &plan);
/// Rank 0, once all ranks have written: the manifest, the name; then older ones go. `parts`: each rank's filesToJson().
Result<> commitCheckpoint(const CheckpointPlan &plan, const std::vector<std::string> &parts);

} // namespace shardscope::train
