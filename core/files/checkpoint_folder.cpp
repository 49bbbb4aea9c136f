// SPDX-License-Identifier: Apache-2.0
#include "core/files/checkpoint_folder.h"

#include "core/base/file.h"
#include "core/files/rank_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shardscope::files {

namespace fs = std::filesystem;

/// Makes a rename or a new name in a folder last.
static Result<> syncFolder(const fs::path &folder)
{
    const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some network file systems can't sync a folder; then there is nothing more to be had.
    if (handle.get() < 0 || (::fsync(handle.get()) != 0 && errno != EINVAL && errno != ENOTSUP))
        return fail("Can't sync {}: {}.", folder.string(), std::strerror(errno));
    return {};
}

static Result<> renamePath(const fs::path &from, const fs::path &to)
{
    std::error_code error;
    fs::rename(from, to, error);
    if (error)
        return fail("Can't rename {} to {}: {}.", from.string(), to.string(), error.message());
    return {};
}

std::string CheckpointFolder::nameOf(int64_t step)
{
    return fmt::format("step-{:06}", step);
}

fs::path CheckpointFolder::partialPathOf(int64_t step) const
{
    return m_root / fmt::format(".{}.partial", nameOf(step));
}

Result<> CheckpointFolder::begin(int64_t step) const
{
    std::error_code error;
    fs::create_directories(m_root, error);
    if (error)
        return fail("Can't make {}: {}.", m_root.string(), error.message());
    for (const fs::directory_entry &entry : fs::directory_iterator(m_root, error)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(".step-") && (name.ends_with(".partial") || name.ends_with(".old")))
            fs::remove_all(entry.path(), error);
    }
    fs::create_directory(partialPathOf(step), error);
    if (error)
        return fail("Can't make {}: {}.", partialPathOf(step).string(), error.message());
    return {};
}

Result<> CheckpointFolder::commit(const Manifest &manifest) const
{
    const fs::path partial = partialPathOf(manifest.step);
    const fs::path final = pathOf(manifest.step);
    return writeFileAtomically(partial / "manifest.json", manifestToJson(manifest))
        .and_then([&] { return syncFolder(partial); })
        .and_then([&]() -> Result<> { return fs::exists(final) ? remove(final) : Result<>{}; })
        .and_then([&] { return renamePath(partial, final); })
        .and_then([&] { return syncFolder(m_root); });
}

void CheckpointFolder::discard(int64_t step) const
{
    std::error_code ignored; // the next begin() removes what is left
    fs::remove_all(partialPathOf(step), ignored);
}

Result<> CheckpointFolder::remove(const fs::path &checkpoint) const
{
    const fs::path old = m_root / fmt::format(".{}.old", checkpoint.filename().string());
    std::error_code error;
    fs::remove_all(old, error);
    if (auto renamed = renamePath(checkpoint, old); !renamed)
        return renamed;
    fs::remove_all(old, error);
    if (error)
        return fail("Can't delete {}: {}.", old.string(), error.message());
    return {};
}

Result<Manifest> CheckpointFolder::readManifest(const fs::path &checkpoint)
{
    const fs::path path = checkpoint / "manifest.json";
    return readTextFile(path).and_then([&](const std::string &text) { return parseManifest(text, path.string()); });
}

static bool isStepName(std::string_view name)
{
    static constexpr std::string_view kPrefix = "step-";
    return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
           name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

std::vector<CheckpointInfo> CheckpointFolder::whole() const
{
    std::vector<CheckpointInfo> found;
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(m_root, error)) {
        if (!isStepName(entry.path().filename().string()))
            continue;
        const auto manifest = readManifest(entry.path());
        if (!manifest)
            continue;
        const bool complete = std::ranges::all_of(manifest->files, [&](const FileEntry &file) {
            std::error_code missing;
            return fs::file_size(entry.path() / file.name, missing) == static_cast<uintmax_t>(file.sizeBytes) &&
                   !missing;
        });
        if (complete)
            found.push_back({manifest->step, manifest->createdNs, entry.path()});
    }
    std::ranges::sort(found, [](const CheckpointInfo &a, const CheckpointInfo &b) {
        return std::pair(a.createdNs, a.step) < std::pair(b.createdNs, b.step);
    });
    return found;
}

std::optional<CheckpointInfo> CheckpointFolder::newest() const
{
    const auto all = whole();
    return all.empty() ? std::nullopt : std::optional(all.back());
}

Result<> CheckpointFolder::prune(int64_t keep) const
{
    const auto all = whole();
    const auto kept = static_cast<size_t>(std::max<int64_t>(keep, 1));
    for (size_t i = 0; i + kept < all.size(); ++i) {
        if (auto removed = remove(all[i].path); !removed)
            return removed;
    }
    return {};
}

} // namespace shardscope::files
