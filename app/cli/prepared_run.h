// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/run_options.h"
#include "core/launch/launch_plan.h"
#include "core/run/run_lock.h"

#include <string>
#include <vector>

namespace shardscope::cli {

/// A run whose folder and attempt are made and whose lock is held.
struct PreparedRun
{
    launch::LaunchPlan plan;
    run::RunLock lock;
    std::vector<std::string> notes; ///< what was decided in the user's stead
};

/// Checks the whole of what a user asked for (keys, devices, data, worker), and only then makes the folder and its
/// files. An error means that nothing was made. From the making on, signals wait for a launch::SignalWatcher.
Result<PreparedRun> prepareRun(const RunOptions &options, const std::vector<std::string> &command,
                               const launch::Environment &environment);

/// Where runs without --out are: run.directory of nothing but the default, as the other verbs look there.
std::filesystem::path runsDirectory();

/// What a user types for this run: its name where it is in the runs directory, else its path.
std::string argumentFor(const run::RunFolder &folder);

} // namespace shardscope::cli
