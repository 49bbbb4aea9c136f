// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/worker/arguments.h"
#include "app/worker/rank_environment.h"
#include "core/config/run_configuration.h"
#include "core/run/run_folder.h"
#include "core/run/run_lock.h"

#include <cstdint>
#include <optional>

namespace shardscope::worker {

/// Where this attempt of the run lies; the same for all its ranks.
struct RunPlace
{
    run::RunFolder folder;
    int attempt = 1;
    int64_t originNs = 0;
    std::optional<std::filesystem::path> resumeFrom; ///< a checkpoint folder
};

/// The place that the supervisor made.
Result<RunPlace> supervisedPlace(const Arguments &arguments, const RankEnvironment &environment);

/// A place that this process runs by itself.
struct OwnPlace
{
    RunPlace place;
    run::RunLock lock;
};

/// Without a supervisor, rank 0 makes the folder (or the next attempt of one that it resumes), run.json and
/// config.json, and holds the lock. After an error nothing new is there.
Result<OwnPlace> makePlace(const Arguments &arguments, const RankEnvironment &environment,
                           const config::RunConfiguration &configuration);

/// What rank 0 tells the others (CBOR: paths need not be UTF-8).
std::string encodePlace(const RunPlace &place);
Result<RunPlace> decodePlace(const std::string &bytes);

} // namespace shardscope::worker
