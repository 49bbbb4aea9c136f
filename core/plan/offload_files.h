// SPDX-License-Identifier: Apache-2.0
// Whether the drive of offload.path has room for what a plan puts into files there.
#pragma once

#include "core/base/result.h"
#include "core/shapes/unit_plan.h"

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::plan {

/// Where offload files would lie.
struct DriveRoom
{
    std::string folder;
    std::string problem;              ///< a sentence: why no file can be made there; empty: one can
    std::optional<int64_t> freeBytes; ///< none: not known
};

/// What all ranks together take of the drive, beyond what their files hold already, at the fullest moment of a change
/// (each state is moved by itself: the new one is there before the old one goes), and 16 MiB a rank, to measure the
/// drive with; 0: no more. plan: the job's units and buckets, with any settings. now: what is in force, with its
/// moments made; null: nothing is in files yet.
int64_t moreInFiles(const shapes::ModelPlan &plan, const config::RunConfiguration *now,
                    const config::RunConfiguration &next);

/// What is wrong, with what there is and what is needed; what to do is the caller's to say.
Result<> checkDrive(const DriveRoom &drive, int64_t neededBytes, int64_t ranks);

} // namespace shardscope::plan
