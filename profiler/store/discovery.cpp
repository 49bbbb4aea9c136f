// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/discovery.h"

#include "core/run/run_folder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

namespace shardscope::store {
namespace {

constexpr std::string_view kExtension = ".sqlite";

/// Ranks by number, then everything else by name.
std::pair<int64_t, std::string> orderOf(const std::filesystem::path &path)
{
    const std::string name = path.filename().string();
    constexpr std::string_view kPrefix = "rank-";
    int64_t rank = std::numeric_limits<int64_t>::max();
    if (name.starts_with(kPrefix))
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), rank);
    return {rank, name};
}

Result<std::vector<std::filesystem::path>> databasesIn(const std::filesystem::path &folder)
{
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::error_code ignored;
        if (it->path().extension() == kExtension && it->is_regular_file(ignored))
            found.push_back(it->path());
    }
    if (error)
        return fail("Can't read the folder {}: {}.", folder.string(), error.message());
    std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return orderOf(a) < orderOf(b); });
    return found;
}

} // namespace

Result<std::vector<std::filesystem::path>> findDatabases(const std::filesystem::path &path)
{
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status))
        return fail("There is no recording at {}.", path.string());
    if (!std::filesystem::is_directory(status))
        return std::vector<std::filesystem::path>{path};

    auto found = databasesIn(path);
    if (!found)
        return found;
    const run::RunFolder folder(path);
    for (const int attempt : folder.attempts()) {
        auto inAttempt = databasesIn(folder.attemptFolder(attempt));
        if (!inAttempt)
            return inAttempt;
        found->insert(found->end(), inAttempt->begin(), inAttempt->end());
    }
    if (found->empty() && !folder.looksLikeRun() && !path.filename().string().starts_with("attempt-")) {
        return fail("{} is no run: it has neither run.json nor a database. Give a run's folder, or one .sqlite file.",
                    path.string());
    }
    return found;
}

} // namespace shardscope::store
