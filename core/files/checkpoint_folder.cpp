// SPDX-License-Identifier: Apache-2.0
#include "core/files/checkpoint_folder.h"

#include "core/base/file.h"
#include "core/files/rank_file.h"

#include <algorithm>

namespace shardscope::files {

namespace fs = std::filesystem;

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

fs::path CheckpointFolder::oldPathOf(const std::string &name) const
{
    return m_root / fmt::format(".{}.old", name);
}

Result<> CheckpointFolder::makeRoot() const
{
    std::error_code error;
    const bool made = fs::create_directories(m_root, error);
    if (error)
        return fail("Can't make {}: {}.", m_root.string(), error.message());
    return made && m_root.has_parent_path() ? syncFolder(m_root.parent_path()) : Result<>{};
}

/// "step-000200" of ".step-000200.old"; empty where the name is of another form.
static std::string nameWithoutOld(std::string_view hidden)
{
    static constexpr std::string_view kEnd = ".old";
    if (!hidden.starts_with(".step-") || !hidden.ends_with(kEnd))
        return {};
    return std::string(hidden.substr(1, hidden.size() - 1 - kEnd.size()));
}

void CheckpointFolder::sweep() const
{
    std::error_code error;
    for (const fs::path &path : entriesOf(m_root)) {
        if (!path.filename().string().starts_with(".step-"))
            continue;
        const std::string name = nameWithoutOld(path.filename().string());
        if (!name.empty() && !fs::exists(m_root / name, error))
            fs::rename(path, m_root / name, error);
        else
            fs::remove_all(path, error);
    }
}

Result<> CheckpointFolder::begin(int64_t step) const
{
    if (auto made = makeRoot(); !made)
        return made;
    sweep();
    std::error_code error;
    fs::create_directory(partialPathOf(step), error);
    if (error)
        return fail("Can't make {}: {}.", partialPathOf(step).string(), error.message());
    return {};
}

/// At each moment the new one or the one that it replaces is there whole.
Result<> CheckpointFolder::giveName(int64_t step) const
{
    const fs::path final = pathOf(step);
    const fs::path old = oldPathOf(nameOf(step));
    std::error_code error;
    const bool replaces = fs::exists(final, error);
    if (replaces) {
        fs::remove_all(old, error);
        if (auto aside = renamePath(final, old); !aside)
            return aside;
    }
    if (auto named = renamePath(partialPathOf(step), final); !named) {
        if (replaces)
            fs::rename(old, final, error);
        return named;
    }
    if (auto synced = syncFolder(m_root); !synced)
        return synced;
    if (replaces)
        fs::remove_all(old, error); // what is left of it the next begin() removes
    return {};
}

Result<> CheckpointFolder::commit(const Manifest &manifest) const
{
    Manifest last = manifest;
    // A clock that was set back must not make the newest the first to be pruned.
    if (const auto before = newest())
        last.createdNs = std::max(last.createdNs, before->createdNs + 1);
    return writeFileAtomically(partialPathOf(last.step) / "manifest.json", manifestToJson(last)).and_then([&] {
        return giveName(last.step);
    });
}

void CheckpointFolder::discard(int64_t step) const
{
    std::error_code ignored; // the next begin() removes what is left
    fs::remove_all(partialPathOf(step), ignored);
}

Result<> CheckpointFolder::remove(const fs::path &checkpoint) const
{
    const fs::path gone = m_root / fmt::format(".{}.gone", checkpoint.filename().string());
    std::error_code error;
    fs::remove_all(gone, error);
    if (auto renamed = renamePath(checkpoint, gone); !renamed)
        return renamed;
    fs::remove_all(gone, error);
    if (error)
        return fail("Can't delete {}: {}.", gone.string(), error.message());
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

std::vector<fs::path> CheckpointFolder::folders() const
{
    std::vector<fs::path> found;
    for (const fs::path &path : entriesOf(m_root)) {
        const std::string name = path.filename().string();
        const std::string replaced = nameWithoutOld(name);
        std::error_code missing;
        if (isStepName(name) || (isStepName(replaced) && !fs::exists(m_root / replaced, missing)))
            found.push_back(path);
    }
    return found;
}

/// Nothing where the checkpoint is not whole.
static std::optional<CheckpointInfo> wholeAt(const fs::path &path)
{
    const auto manifest = CheckpointFolder::readManifest(path);
    if (!manifest)
        return std::nullopt;
    for (const FileEntry &file : manifest->files) {
        std::error_code missing;
        if (fs::file_size(path / file.name, missing) != static_cast<uintmax_t>(file.sizeBytes) || missing)
            return std::nullopt;
    }
    return CheckpointInfo{manifest->step, manifest->createdNs, path};
}

std::vector<CheckpointInfo> CheckpointFolder::whole() const
{
    std::vector<CheckpointInfo> found;
    for (const fs::path &path : folders()) {
        if (auto info = wholeAt(path))
            found.push_back(std::move(*info));
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

/// By the number in the name, whatever its length.
static bool isLaterName(const fs::path &path, const fs::path &other)
{
    const std::string a = path.filename().string();
    const std::string b = other.filename().string();
    return std::pair(a.size(), a) > std::pair(b.size(), b);
}

std::vector<fs::path> CheckpointFolder::damagedAfterNewest() const
{
    const auto last = newest();
    std::vector<fs::path> damaged;
    for (const fs::path &path : folders()) {
        if (wholeAt(path))
            continue;
        // Where the time can't be read the name must serve.
        const auto manifest = readManifest(path);
        if (!last || (manifest ? manifest->createdNs > last->createdNs : isLaterName(path, last->path)))
            damaged.push_back(path);
    }
    std::ranges::sort(damaged);
    return damaged;
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
