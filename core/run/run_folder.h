// SPDX-License-Identifier: Apache-2.0
// Where everything of a run lies (docs/contract.md, "A run is a folder"). Nothing else in the project spells these
// names.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::run {

/// Paths only: constructing one touches no file.
class RunFolder
{
public:
    explicit RunFolder(std::filesystem::path root);

    const std::filesystem::path &root() const { return m_root; }
    /// The folder's own name, UTF-8.
    std::string name() const;

    std::filesystem::path runFile() const { return m_root / "run.json"; }
    std::filesystem::path stateFile() const { return m_root / "state.json"; }
    std::filesystem::path userFile() const { return m_root / "user.json"; }
    std::filesystem::path lockFile() const { return m_root / "lock"; }

    std::filesystem::path attemptFolder(int attempt) const;
    std::filesystem::path configFile(int attempt) const { return attemptFolder(attempt) / "config.json"; }
    /// What was in force last. It is there from the attempt's first whole step on; configFile() stays as it was.
    std::filesystem::path inForceFile(int attempt) const { return attemptFolder(attempt) / "in-force.json"; }
    std::filesystem::path supervisorDatabase(int attempt) const { return attemptFolder(attempt) / "supervisor.sqlite"; }
    std::filesystem::path logsFolder(int attempt) const { return attemptFolder(attempt) / "logs"; }
    std::filesystem::path rankDatabase(int attempt, int rank) const;
    std::filesystem::path flightFile(int attempt, int rank) const;
    std::filesystem::path logFile(int attempt, int rank) const;

    /// What lies in it: files::CheckpointFolder.
    std::filesystem::path checkpointsFolder() const { return m_root / "checkpoints"; }

    /// All attempts that have a folder, ascending.
    std::vector<int> attempts() const;
    /// 0 where there is none yet.
    int lastAttempt() const;
    /// The newest attempt that has done a step: what was refused, or failed before, leaves nothing to go on with.
    /// lastAttempt() where none is known to have.
    int lastTrainedAttempt() const;

    /// True where run.json or state.json or an attempt is there.
    bool looksLikeRun() const;

    /// Makes attempt-<attempt>/logs. Refuses an attempt that exists.
    Result<> createAttempt(int attempt) const;

private:
    std::filesystem::path m_root;
};

/// Makes the folder and its parents, or nothing at all. Refuses one that exists, unless it is empty; says what to do.
Result<RunFolder> createRunFolder(const std::filesystem::path &root);
/// Makes <runs>/<name>, or <runs>/<name>-2, … if others were faster. Odd characters in the name are kept but for '/'.
Result<RunFolder> createNamedRun(const std::filesystem::path &runs, std::string_view name);
/// "15m-2-ranks-2025-03-01-142233", from local time.
std::string defaultRunName(std::string_view model, int64_t ranks, int64_t nowNs);

/// A run by its path, or by its name in the runs directory (of a link, the folder it points to). The error names the
/// nearest existing run.
Result<RunFolder> findRun(std::string_view nameOrPath, const std::filesystem::path &runs);

} // namespace shardscope::run
