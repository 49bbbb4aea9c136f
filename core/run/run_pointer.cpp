// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_pointer.h"

#include "core/base/file.h"

namespace fs = std::filesystem;

namespace shardscope::run {

/// Where a link points to, made absolute; nothing where the path is no link.
static std::optional<fs::path> targetOf(const fs::path &link)
{
    std::error_code error;
    if (!fs::is_symlink(link, error))
        return std::nullopt;
    const fs::path target = fs::read_symlink(link, error);
    if (error)
        return std::nullopt;
    return (target.is_absolute() ? target : link.parent_path() / target).lexically_normal();
}

static std::optional<ListedRun> runAt(const fs::path &entry)
{
    ListedRun run{entry.filename().string(), RunFolder(targetOf(entry).value_or(entry))};
    return run.folder.looksLikeRun() ? std::optional(std::move(run)) : std::nullopt;
}

std::optional<ListedRun> runNamed(const fs::path &runs, const std::string &name)
{
    return runAt(runs / name);
}

std::vector<ListedRun> runsIn(const fs::path &runs)
{
    std::vector<ListedRun> all;
    for (const fs::path &entry : entriesOf(runs)) {
        if (auto run = runAt(entry))
            all.push_back(std::move(*run));
    }
    return all;
}

static void removeBrokenLinks(const fs::path &runs)
{
    std::error_code error;
    for (const fs::path &entry : entriesOf(runs)) {
        const auto target = targetOf(entry);
        if (target && !fs::exists(*target, error) && fs::exists(target->parent_path(), error))
            fs::remove(entry, error);
    }
}

static bool same(const fs::path &a, const fs::path &b)
{
    std::error_code error;
    return fs::equivalent(a, b, error) && !error;
}

Result<std::string> leavePointer(const fs::path &runs, const RunFolder &folder)
{
    std::error_code error;
    fs::create_directories(runs, error);
    if (error)
        return fail("Can't make the runs directory {}: {}.", runs.string(), error.message());
    removeBrokenLinks(runs);
    for (const fs::path &entry : entriesOf(runs)) {
        if (same(entry, folder.root()))
            return entry.filename().string();
    }
    const auto target = absolutePath(folder.root());
    if (!target)
        return tl::unexpected(target.error());
    for (int copy = 1; copy < 10'000; ++copy) {
        const std::string name = copy == 1 ? folder.name() : fmt::format("{}-{}", folder.name(), copy);
        fs::create_directory_symlink(*target, runs / name, error);
        if (!error)
            return name;
        if (error != std::errc::file_exists)
            return fail("Can't make the link {}: {}.", (runs / name).string(), error.message());
    }
    return fail("There are too many runs named {} in {}.", folder.name(), runs.string());
}

} // namespace shardscope::run
