// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/run_configuration.h"
#include "core/plan/offload_files.h"

#include <filesystem>
#include <optional>

namespace shardscope::cli {

/// The nearest folder from `path` upwards that exists, which is where a missing one would be made.
std::filesystem::path existingParent(std::filesystem::path path);

/// What may still be written to the drive of a folder that exists; none: the system does not tell.
std::optional<int64_t> freeDriveBytes(const std::filesystem::path &folder);

/// Tries it: makes the folder where it is missing and a file in it, and takes back what it made.
plan::DriveRoom tryDrive(const std::filesystem::path &folder);

/// Whether a run that begins has room for what it offloads to files. Nothing is left behind. runFolder: where it will
/// be, as far as that is known; files lie below it where offload.path is empty.
Result<> checkDriveOfNewRun(const shapes::ModelPlan &plan, const config::RunConfiguration &configuration,
                            const std::filesystem::path &runFolder);

/// Whether a change of a running job has. now: what is in force; null: before its first step, when it is not known what
/// is in its files. attemptFolder: where they lie where offload.path is empty.
Result<> checkDriveOfChange(const shapes::ModelPlan &plan, const config::RunConfiguration *now,
                            const config::RunConfiguration &next, const std::filesystem::path &attemptFolder);

} // namespace shardscope::cli
