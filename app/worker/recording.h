// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/worker/rank_environment.h"
#include "app/worker/run_place.h"
#include "core/config/check.h"
#include "core/run/database_place.h"
#include "profiler/collect/recorder.h"

#include <c10/core/Device.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::worker {

/// Opens attempt-K/rank-N.sqlite, at `database`, and hooks into the allocators. Call before the first tensor and before
/// the device's context exists: what was there before is not seen. trouble: as in RecorderOptions.
Result<std::unique_ptr<collect::Recorder>> openRecording(const config::ResolvedRun &run, double modelFlopsPerToken,
                                                         const RunPlace &place, const RankEnvironment &environment,
                                                         const run::DatabasePlace &database, c10::Device device,
                                                         int64_t firstStep, const std::vector<std::string> &commandLine,
                                                         std::function<void(const std::string &)> trouble);

} // namespace shardscope::worker
