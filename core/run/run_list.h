// SPDX-License-Identifier: Apache-2.0
// The runs of a runs directory, as the sidebar and `status` show them.
#pragma once

#include "core/run/run_status.h"
#include "core/run/user_notes.h"

#include <filesystem>
#include <string>
#include <vector>

namespace shardscope::run {

struct RunSummary
{
    RunFolder folder;
    UserNotes notes;
    RunStatus status;                 ///< as it is now (lost where it is)
    std::string problem;              ///< why state.json could not be read; empty: it could
    std::string name = folder.name(); ///< in the runs directory
    /// The user's name for it, or `name`.
    std::string shownName() const;
};

/// One run. Never fails: what could not be read is in `problem`.
RunSummary summarize(const RunFolder &folder, int64_t nowNs);

/// All runs of the directory (run_pointer.h), the newest start first. Folders that are no run are left out; a directory
/// that is not there has none.
std::vector<RunSummary> listRuns(const std::filesystem::path &runs, int64_t nowNs);

} // namespace shardscope::run
