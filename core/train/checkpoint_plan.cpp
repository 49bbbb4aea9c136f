// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint_plan.h"

#include <random>
#include <spdlog/spdlog.h>

namespace shardscope::train {

std::string newCheckpointId()
{
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

Result<> beginCheckpoint(const CheckpointPlan &plan)
{
    auto begun = plan.folder.begin(plan.step()).and_then([&] {
        return files::createSharedFiles(plan.folder.partialPathOf(plan.step()), plan.part());
    });
    if (!begun)
        plan.folder.discard(plan.step());
    return begun;
}

Result<> commitCheckpoint(const CheckpointPlan &plan, const std::vector<std::string> &parts)
{
    files::Manifest manifest = plan.manifest;
    manifest.buckets = files::storedBuckets(plan.part());
    for (const std::string &text : parts) {
        auto part = files::parseFiles(text);
        if (!part)
            return tl::unexpected(part.error());
        files::addFiles(manifest.files, std::move(*part));
    }
    if (auto committed = plan.folder.commit(manifest); !committed)
        return committed;
    // The new checkpoint is whole; an old one that can't be deleted costs space and nothing else.
    if (auto pruned = plan.folder.prune(plan.keep); !pruned)
        spdlog::warn("{}", pruned.error().text);
    return {};
}

} // namespace shardscope::train
