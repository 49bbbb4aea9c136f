// SPDX-License-Identifier: Apache-2.0
#include "core/plan/offload_files.h"

#include "core/base/text.h"
#include "core/plan/memory_ledger.h"
#include "core/shapes/offload_layout.h"

#include <algorithm>
#include <array>

namespace shardscope::plan {

using config::RunConfiguration;

namespace {

/// Bytes in a rank's file.
struct FileStates
{
    int64_t shardGroup = 0;
    std::array<int64_t, 3> moved{}; ///< masters and both moments, in the order in which they change places
    int64_t copy = 0;
};

FileStates fileStatesOf(const LedgerBucket &bucket, const LedgerOptions &options)
{
    const shapes::BucketSettings &settings = bucket.plan->settings;
    const StateBytes bytes = stateBytesOf(bucket, options);
    FileStates states{.shardGroup = settings.shardGroup};
    if (settings.offloadParameters == OffloadPlace::Nvme) {
        states.moved[0] = shapes::wholeFileBlocks(bytes.master);
        states.copy = shapes::wholeFileBlocks(bytes.copy);
    }
    if (settings.offloadOptimizer == OffloadPlace::Nvme) {
        for (int64_t i = 0; i < bytes.moments; ++i)
            states.moved[static_cast<size_t>(1 + i)] = shapes::wholeFileBlocks(bytes.moment);
    }
    return states;
}

/// Of all buckets, in the order in which the engine changes them; empty where the rules don't fit the plan.
std::vector<FileStates> allFileStates(const shapes::ModelPlan &plan, const RunConfiguration &configuration)
{
    std::vector<FileStates> all;
    const auto replanned = shapes::replanned(plan, configuration);
    if (!replanned)
        return all;
    for (const LedgerUnit &unit : ledgerUnitsOf(*replanned)) {
        for (const LedgerBucket &bucket : unit.buckets)
            all.push_back(fileStatesOf(bucket, LedgerOptions::from(configuration)));
    }
    return all;
}

/// As Engine::redistribute() goes: the old copy goes first, and the new one comes last.
int64_t fullestMoment(const std::vector<FileStates> &before, const std::vector<FileStates> &after)
{
    int64_t more = 0;
    int64_t most = 0;
    for (size_t i = 0; i < after.size(); ++i) {
        more -= before[i].copy;
        for (size_t state = 0; state < after[i].moved.size(); ++state) {
            const int64_t was = before[i].moved[state];
            const int64_t is = after[i].moved[state];
            if (was == is && before[i].shardGroup == after[i].shardGroup)
                continue;
            more += is;
            most = std::max(most, more);
            more -= was;
        }
        more += after[i].copy;
        most = std::max(most, more);
    }
    return most;
}

} // namespace

int64_t moreInFiles(const shapes::ModelPlan &plan, const RunConfiguration *now, const RunConfiguration &next)
{
    const std::vector<FileStates> after = allFileStates(plan, next);
    std::vector<FileStates> before(after.size());
    if (now)
        before = allFileStates(plan, *now);
    if (before.size() != after.size()) // whether its rules fit is not asked here
        return 0;
    const int64_t most = fullestMoment(before, after);
    return most > 0 ? plan.worldSize * (most + shapes::kMeasuredFileBytes) : 0;
}

Result<> checkDrive(const DriveRoom &drive, int64_t neededBytes, int64_t ranks)
{
    if (!drive.problem.empty())
        return fail("There can be no file in {} for what is offloaded. {}", drive.folder, drive.problem);
    if (drive.freeBytes && neededBytes >= *drive.freeBytes) // a drive filled to the brim ails everybody on it
        return fail("The drive of {} has too little room for what is to be offloaded there: {} are needed for {} "
                    "rank{}, and {} are free.",
                    drive.folder, formatBytes(neededBytes), ranks, ranks == 1 ? "" : "s",
                    formatBytes(*drive.freeBytes));
    return {};
}

} // namespace shardscope::plan
