// SPDX-License-Identifier: Apache-2.0
// Runs that lie elsewhere (--out, run.directory) stand in the runs directory as symbolic links to their folders, so
// that lists and names find them.
#pragma once

#include "core/base/result.h"
#include "core/run/run_folder.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::run {

/// A run as the runs directory has it.
struct ListedRun
{
    std::string name; ///< in the runs directory; by this the verbs take it
    RunFolder folder; ///< where it is
};

/// The run that a name in the runs directory means: a folder of it, or what a link of it points to. Nothing where there
/// is none.
std::optional<ListedRun> runNamed(const std::filesystem::path &runs, const std::string &name);
/// All runs of the directory, in no order. Links whose folder is gone are left out.
std::vector<ListedRun> runsIn(const std::filesystem::path &runs);

/// Makes the runs directory know a run that lies elsewhere; nothing happens where it knows it. Returns the run's name
/// there: the folder's, or with "-2", "-3", … where another run has that one. On the way links go whose run was
/// deleted; one whose folder's parent is missing too stays (a disk that is not mounted now).
Result<std::string> leavePointer(const std::filesystem::path &runs, const RunFolder &folder);

} // namespace shardscope::run
