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
/// renamed before they are deleted (.step-000200.gone): what is called step-000200 is whole. One that is replaced keeps
/// its files as .step-000200.old until the new one has its name.
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

    /// Makes an empty folder at partialPathOf(step), removes what broken-off writes left, and gives one that was being
    /// replaced its name back.
    Result<> begin(int64_t step) const;

    /// Writes the manifest and gives the folder its name. One of the same step that is there already is replaced. Its
    /// time is after that of all others, whatever the clock says: it is the newest.
    Result<> commit(const Manifest &manifest) const;

    /// Deletes what begin() made, after a failure.
    void discard(int64_t step) const;

    /// The whole ones, oldest first (by the time of writing: after a return to an earlier step that is what matters).
    std::vector<CheckpointInfo> whole() const;
    std::optional<CheckpointInfo> newest() const;
    /// Those that are not whole and would be the newest if they were: whoever goes on from newest() should say so.
    std::vector<std::filesystem::path> damagedAfterNewest() const;

    /// Deletes the oldest whole ones until `keep` are left; never the last one.
    Result<> prune(int64_t keep) const;

    /// manifest.json of a checkpoint, read and checked.
    static Result<Manifest> readManifest(const std::filesystem::path &checkpoint);

private:
    std::filesystem::path oldPathOf(const std::string &name) const;
    /// The folders of checkpoints, whole or not, with one that was being replaced under its name beside.
    std::vector<std::filesystem::path> folders() const;
    void sweep() const;
    Result<> makeRoot() const;
    Result<> giveName(int64_t step) const;
    Result<> remove(const std::filesystem::path &checkpoint) const;

    std::filesystem::path m_root;
};

} // namespace shardscope::files
