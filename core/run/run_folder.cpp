// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_folder.h"

#include "core/base/file.h"
#include "core/base/parent_folders.h"
#include "core/base/text.h"
#include "core/run/run_pointer.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::run {

/// The number at the end of "attempt-12"; nothing where the name is of another form.
static std::optional<int64_t> numberAfter(const std::string &name, std::string_view prefix)
{
    if (!name.starts_with(prefix) || name.size() == prefix.size())
        return std::nullopt;
    int64_t number = 0;
    const char *end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, number);
    if (error != std::errc{} || rest != end || number < 0)
        return std::nullopt;
    return number;
}

/// Numbers of the folders named <prefix><number>, ascending.
static std::vector<int64_t> numberedFolders(const fs::path &parent, std::string_view prefix)
{
    std::vector<int64_t> numbers;
    std::error_code error;
    for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code ignored;
        const auto number = numberAfter(entry->path().filename().string(), prefix);
        if (number && entry->is_directory(ignored))
            numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

RunFolder::RunFolder(fs::path root)
    : m_root(std::move(root))
{
    // "runs/a/" and "." have no file name: the run's name would be lost.
    if (m_root.filename().empty() || m_root.filename() == "." || m_root.filename() == "..") {
        std::error_code error;
        fs::path whole = fs::absolute(m_root, error).lexically_normal();
        if (!error)
            m_root = whole.filename().empty() ? whole.parent_path() : whole;
    }
}

std::string RunFolder::name() const
{
    return m_root.filename().string();
}

fs::path RunFolder::attemptFolder(int attempt) const
{
    return m_root / fmt::format("attempt-{}", attempt);
}

fs::path RunFolder::rankDatabase(int attempt, int rank) const
{
    return attemptFolder(attempt) / fmt::format("rank-{}.sqlite", rank);
}

fs::path RunFolder::flightFile(int attempt, int rank) const
{
    return attemptFolder(attempt) / fmt::format("rank-{}.flight", rank);
}

fs::path RunFolder::logFile(int attempt, int rank) const
{
    return logsFolder(attempt) / fmt::format("rank-{}.log", rank);
}

std::vector<int> RunFolder::attempts() const
{
    std::vector<int> attempts;
    for (int64_t number : numberedFolders(m_root, "attempt-")) {
        if (number > 0)
            attempts.push_back(static_cast<int>(number));
    }
    return attempts;
}

int RunFolder::lastAttempt() const
{
    const std::vector<int> all = attempts();
    return all.empty() ? 0 : all.back();
}

int RunFolder::lastTrainedAttempt() const
{
    std::error_code error;
    const std::vector<int> all = attempts();
    for (auto attempt = all.rbegin(); attempt != all.rend(); ++attempt) {
        if (fs::exists(inForceFile(*attempt), error))
            return *attempt;
    }
    return lastAttempt();
}

bool RunFolder::looksLikeRun() const
{
    std::error_code error;
    return fs::exists(runFile(), error) || fs::exists(stateFile(), error) || lastAttempt() > 0;
}

Result<> RunFolder::createAttempt(int attempt) const
{
    std::error_code error;
    if (!fs::create_directory(attemptFolder(attempt), error)) {
        if (!error)
            return fail("{} exists already.", attemptFolder(attempt).string());
        return fail("Can't make {}: {}.", attemptFolder(attempt).string(), error.message());
    }
    if (!fs::create_directory(logsFolder(attempt), error))
        return fail("Can't make {}: {}.", logsFolder(attempt).string(), error.message());
    return {};
}

Result<RunFolder> createRunFolder(const fs::path &root)
{
    const auto whole = absolutePath(root);
    if (!whole)
        return tl::unexpected(whole.error());
    std::error_code error;
    const RunFolder folder(*whole);
    auto parents = ParentFolders::makeAbove(folder.root());
    if (!parents)
        return fail("{} Give another one with --out.", parents.error().text);
    const bool made = fs::create_directory(folder.root(), error);
    if (error)
        return fail("Can't make the run folder {}: {}. Give another one with --out.", folder.root().string(),
                    error.message());
    parents->keep();
    if (made)
        return folder;
    if (folder.looksLikeRun())
        return fail("There is a run in {} already. Give another folder with --out, or go on with it: --resume \"{}\".",
                    folder.root().string(), folder.root().string());
    if (!fs::is_empty(folder.root(), error) || error)
        return fail("{} exists and is not empty. Give a new folder with --out.", folder.root().string());
    if (::access(folder.root().c_str(), W_OK | X_OK) != 0)
        return fail("No permission to write in {}. Give another folder with --out.", folder.root().string());
    return folder;
}

Result<RunFolder> createNamedRun(const fs::path &runs, std::string_view name)
{
    std::string base(name);
    std::replace(base.begin(), base.end(), '/', '-');
    if (base.empty() || base == "." || base == "..")
        return fail("\"{}\" can't be the name of a run. Give another one with --set run.name=NAME.", name);
    const auto parent = absolutePath(runs);
    if (!parent)
        return tl::unexpected(parent.error());
    auto parents = ParentFolders::makeAbove(*parent / base);
    if (!parents)
        return fail("The runs directory {} can't be had. {} Give a folder with --out.", runs.string(),
                    parents.error().text);
    std::error_code error;
    for (int copy = 1; copy < 10'000; ++copy) {
        const fs::path root = *parent / (copy == 1 ? base : fmt::format("{}-{}", base, copy));
        if (fs::create_directory(root, error)) {
            parents->keep();
            return RunFolder(root);
        }
        if (error)
            return fail("Can't make the run folder {}: {}. Give another one with --out.", root.string(),
                        error.message());
    }
    return fail("There are too many runs named {} in {}. Give another name with --set run.name=NAME.", base,
                runs.string());
}

std::string defaultRunName(std::string_view model, int64_t ranks, int64_t nowNs)
{
    const std::time_t seconds = nowNs / 1'000'000'000;
    std::tm local{};
    localtime_r(&seconds, &local);
    return fmt::format("{}-{}-rank{}-{:04}{:02}{:02}-{:02}{:02}{:02}", model, ranks, ranks == 1 ? "" : "s",
                       local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min,
                       local.tm_sec);
}

static std::vector<std::string> runNames(const fs::path &runs)
{
    std::vector<std::string> names;
    for (const ListedRun &run : runsIn(runs))
        names.push_back(run.name);
    return names;
}

Result<RunFolder> findRun(std::string_view nameOrPath, const fs::path &runs)
{
    if (nameOrPath.empty())
        return fail("The name of the run is empty. Runs are in {}.", runs.string());
    const bool isPath = nameOrPath.find('/') != std::string_view::npos || nameOrPath == "." || nameOrPath == "..";
    if (!isPath) {
        if (auto named = runNamed(runs, std::string(nameOrPath)))
            return named->folder;
    }
    std::error_code error;
    const fs::path path = fs::absolute(nameOrPath, error).lexically_normal();
    const RunFolder there(path);
    if (!error && there.looksLikeRun())
        return there;
    if (fs::exists(path, error))
        return fail("{} is no run: it has neither run.json nor state.json. Runs are folders in {}.", path.string(),
                    runs.string());
    if (isPath)
        return fail("There is no run in {}.", path.string());
    const auto nearest = nearestName(nameOrPath, runNames(runs));
    return fail("There is no run named {} in {}{}", nameOrPath, runs.string(),
                nearest ? fmt::format(". Did you mean {}?", *nearest) : std::string(", and no such folder here."));
}

} // namespace shardscope::run
