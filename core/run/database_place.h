// SPDX-License-Identifier: Apache-2.0
// SQLite's WAL needs shared memory and locks that network file systems don't give: there a recording is written to a
// local folder, and moved to the run's folder at its end.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::run {

/// The magic number of a folder's file system, as statfs(2) has it; nothing where it can't be told.
using FileSystemOf = std::function<std::optional<int64_t>(const std::filesystem::path &folder)>;
std::optional<int64_t> fileSystemOf(const std::filesystem::path &folder);
/// "NFS", "SMB", "FUSE", "9p", …; nothing for all others.
std::optional<std::string> networkFileSystem(int64_t magic);

/// Where one database of a run is written, and where it belongs.
class DatabasePlace
{
public:
    /// `home` in an existing folder. On a network file system the database goes to the first of `candidates` that is
    /// none and can be made; where there is none of these, it stays at home.
    static DatabasePlace choose(const std::filesystem::path &home, const FileSystemOf &fileSystem = fileSystemOf,
                                const std::vector<std::filesystem::path> &candidates = localFolders());
    /// This user's cache, then the folder for temporary files.
    static std::vector<std::filesystem::path> localFolders();

    /// Where to write it.
    const std::filesystem::path &path() const { return m_path; }
    /// For the user: that and why it is elsewhere, or should be. Empty where all is as usual.
    const std::string &note() const { return m_note; }
    /// Once it is closed: moves it home. Nothing happens where it is there. After an error it is where it was, and the
    /// error says so.
    Result<> moveHome();

private:
    explicit DatabasePlace(std::filesystem::path home);
    std::filesystem::path m_home;
    std::filesystem::path m_path;
    std::string m_note;
};

} // namespace shardscope::run
