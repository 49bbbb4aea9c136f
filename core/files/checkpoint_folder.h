// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/manifest.h"

#include <filesystem>
#include <optional>
#include <vector>

namespace shardscope::files {

/// A checkpoint that is whole: its manifest reads, its files are there and of the right length.
struct CheckpointInfo
{
    int64_t step = 0;
    int64_t createdNs = 0;
    std::filesystem::path path;
};

/// The folder `checkpoints` of a run. Checkpoints are written beside (.step-000200.partial), synced and renamed, and
/// renamed before they are deleted: what is called step-000200 is whole.
class CheckpointFolder
{
public:
    explicit CheckpointFolder(std::filesystem::path root)
        : m_root(std::move(root))
    {
    }

    /// "step-000200"
    static std::string nameOf(int64_t step);
    std::filesystem::path pathOf(int64_t step) const { return m_root / nameOf(step); }
    /// Where the ranks write before commit().
    std::filesystem::path partialPathOf(int64_t step) const;

    /// Makes an empty folder at partialPathOf(step), and removes what broken-off writes left.
    Result<> begin(int64_t step) const;

    /// Writes the manifest and gives the folder its name. One of the same step that is there already is replaced.
    Result<> commit(const Manifest &manifest) const;

    /// Deletes what begin() made, after a failure.
    void discard(int64_t step) const;

    /// The whole ones, oldest first (by the time of writing: after a return to an earlier step that is what matters).
    std::vector<CheckpointInfo> whole() const;
    std::optional<CheckpointInfo> newest() const;

    /// Deletes the oldest whole ones until `keep` are left; never the last one.
    Result<> prune(int64_t keep) const;

    /// manifest.json of a checkpoint, read and checked.
    static Result<Manifest> readManifest(const std::filesystem::path &checkpoint);

private:
    Result<> remove(const std::filesystem::path &checkpoint) const;

    std::filesystem::path m_root;
};

} // namespace shardscope::files
