// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/files/checkpoint_folder.h"
#include "core/launch/environment.h"
#include "core/launch/live_settings.h"
#include "core/run/run_folder.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace shardscope::launch {

/// What the supervisor starts. The folder and its attempt exist, and the attempt's config.json is written.
struct LaunchPlan
{
    run::RunFolder folder;
    int attempt = 1;
    std::filesystem::path worker; ///< shardscope-worker
    int ranks = 1;
    bool shareDevice = false;                             ///< several ranks on one GPU
    int64_t steps = 0;                                    ///< shown until the first rank says it
    int64_t hangNs = 0;                                   ///< how long a run may stand still; 0: for ever
    int cores = 1;                                        ///< shared by the ranks
    std::optional<files::CheckpointInfo> resumeFrom = {}; ///< where the attempt goes on
    Environment environment = processEnvironment();       ///< the user's; ranks get a cleaned one
    /// As config.json has it, and what may become of it while the run goes on.
    config::RunConfiguration configuration = {};
    Admit admit = {};
};

/// shardscope-worker: what SHARDSCOPE_WORKER names, else beside the running program, else in PATH.
Result<std::filesystem::path> findWorker();

} // namespace shardscope::launch
