// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/export_checkpoint.h"

#include "core/base/file.h"
#include "core/base/parent_folders.h"
#include "core/files/checkpoint_folder.h"
#include "core/pretrained/adapter_export.h"
#include "core/pretrained/model_export.h"

namespace shardscope::pretrained {

/// Beside the target, whose name it gets once it is whole.
static std::filesystem::path partialPathOf(const std::filesystem::path &target)
{
    return target.parent_path() / ("." + target.filename().string() + ".partial");
}

/// The rename would take an empty folder's place too, but not a file's or a full one's.
static Result<> giveName(const std::filesystem::path &partial, const std::filesystem::path &target)
{
    std::error_code error;
    std::filesystem::rename(partial, target, error);
    if (error)
        return fail("Can't rename {} to {}: {}.", partial.string(), target.string(), error.message());
    return syncFolder(target.parent_path());
}

Result<> checkExportTarget(const std::filesystem::path &target)
{
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(target, error)))
        return fail("{} exists already. Give a folder that doesn't.", target.string());
    std::filesystem::path above = target.parent_path();
    while (above.has_relative_path() &&
           std::filesystem::symlink_status(above, error).type() == std::filesystem::file_type::not_found)
        above = above.parent_path();
    if (!std::filesystem::is_directory(above, error))
        return fail("{} is no folder to make {} in.", above.string(), target.lexically_relative(above).string());
    return {};
}

Result<> checkExportFormat(const std::filesystem::path &checkpoint, ExportFormat format)
{
    const auto manifest = files::CheckpointFolder::readManifest(checkpoint);
    if (!manifest)
        return tl::unexpected(manifest.error());
    const auto model = modelOf(*manifest, checkpoint);
    if (!model)
        return tl::unexpected(model.error());
    return format == ExportFormat::Adapter ? checkAdapters(*model) : Result<>();
}

Result<> exportCheckpoint(const std::filesystem::path &checkpoint, const std::filesystem::path &target,
                          const ExportOptions &options)
{
    if (auto free = checkExportTarget(target); !free)
        return free;
    auto weights = CheckpointWeights::open(checkpoint);
    if (!weights)
        return tl::unexpected(weights.error());
    const auto model = modelOf(weights->manifest(), checkpoint);
    if (!model)
        return tl::unexpected(model.error());
    const std::filesystem::path partial = partialPathOf(target);
    auto parents = ParentFolders::makeAbove(target);
    if (!parents)
        return tl::unexpected(parents.error());
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored); // of an export that was killed
    const auto write = options.format == ExportFormat::Adapter ? exportAdapter : exportModel;
    auto result = write(*weights, *model, partial, options).and_then([&] { return giveName(partial, target); });
    if (result)
        parents->keep();
    else
        std::filesystem::remove_all(partial, ignored);
    return result;
}

} // namespace shardscope::pretrained
