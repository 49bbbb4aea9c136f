// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/run/run_status.h"
#include "profiler/store/catalog_reader.h"
#include "profiler/store/query.h"
#include "profiler/store/sqlite_error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace shardscope::store {
namespace {

std::optional<int64_t> integerAt(const nlohmann::json &object, const char *key)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer())
        return std::nullopt;
    return found->get<int64_t>();
}

/// What no rank can tell: how it died. From the supervisor's events.
void readDeaths(SourceFile &file, Catalog &catalog)
{
    DatabaseFile::Access access(file.database, nullptr);
    Query query(access.database(), "SELECT p.attempt, e.detail_json FROM event e JOIN process p USING (process_id) "
                                   "WHERE e.kind = 'death' AND p.rank IS NULL ORDER BY e.time_ns");
    while (query.next()) {
        const auto detail = nlohmann::json::parse(query.text(1), nullptr, false);
        if (!detail.is_object())
            continue;
        const auto rank = integerAt(detail, "rank");
        const Index index = rank ? catalog.rankProcess(query.integer(0), *rank) : kNone;
        if (index == kNone)
            continue;
        ProcessInfo &process = catalog.processes[static_cast<size_t>(index)];
        if (const auto signal = integerAt(detail, "signal"))
            process.signal = signal;
        if (const auto exitCode = integerAt(detail, "exit_code"))
            process.exitCode = exitCode;
    }
}

bool hasEnded(const ProcessInfo &process)
{
    return process.endedNs || process.exitCode || process.signal;
}

std::string endOf(const ProcessInfo &process)
{
    const int64_t rank = process.rank.value_or(0);
    if (process.signal) {
        return fmt::format("rank {} was killed by signal {} ({})", rank, *process.signal,
                           strsignal(static_cast<int>(*process.signal)));
    }
    return fmt::format("rank {} ended with exit code {}", rank, process.exitCode.value_or(0));
}

std::string endReasonFromRanks(const AttemptInfo &attempt, const Catalog &catalog)
{
    bool allEnded = !attempt.ranks.empty();
    for (const Index index : attempt.ranks) {
        const ProcessInfo &process = catalog.processes[static_cast<size_t>(index)];
        if (process.signal || process.exitCode.value_or(0) != 0)
            return endOf(process);
        allEnded = allEnded && hasEnded(process);
    }
    return allEnded ? "done" : "not ended";
}

/// Of the newest attempt the supervisor knows more than its ranks.
std::optional<std::string> endReasonFromState(const run::RunStatus &status)
{
    if (status.live())
        return std::string(toText(status.state));
    if (status.state == RunState::Failed && status.failure) {
        const std::string end = run::describeEnd(*status.failure);
        return end.empty() ? status.failure->text : end;
    }
    if (status.state == RunState::Lost)
        return "lost: its supervisor is gone";
    return std::string(toText(status.state));
}

void fillAttempts(Catalog &catalog)
{
    std::map<int64_t, AttemptInfo> attempts;
    for (size_t i = 0; i < catalog.processes.size(); ++i) {
        const ProcessInfo &process = catalog.processes[i];
        AttemptInfo &attempt = attempts[process.attempt];
        attempt.attempt = process.attempt;
        if (!process.rank) {
            attempt.supervisor = static_cast<Index>(i);
            continue;
        }
        attempt.ranks.push_back(static_cast<Index>(i));
        attempt.worldSize = std::max({attempt.worldSize, process.worldSize.value_or(0), *process.rank + 1});
    }
    catalog.attempts.clear();
    for (auto &[number, attempt] : attempts) {
        std::sort(attempt.ranks.begin(), attempt.ranks.end(), [&](Index a, Index b) {
            return catalog.processes[static_cast<size_t>(a)].rank < catalog.processes[static_cast<size_t>(b)].rank;
        });
        for (int64_t rank = 0; rank < attempt.worldSize; ++rank) {
            if (catalog.rankProcess(number, rank) == kNone)
                attempt.missingRanks.push_back(rank);
        }
        attempt.endReason = endReasonFromRanks(attempt, catalog);
        catalog.attempts.push_back(std::move(attempt));
    }
}

bool isFinished(const Catalog &catalog, const std::optional<run::RunStatus> &status)
{
    if (status)
        return !status->live();
    if (catalog.attempts.empty() || catalog.attempts.back().ranks.empty())
        return false;
    const auto &ranks = catalog.attempts.back().ranks;
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](Index index) { return hasEnded(catalog.processes[static_cast<size_t>(index)]); });
}

bool isComplete(const Catalog &catalog)
{
    const bool nothingMissing = std::all_of(catalog.attempts.begin(), catalog.attempts.end(), [](const auto &attempt) {
        return attempt.missingRanks.empty() && attempt.worldSize > 0;
    });
    // A rank that was killed has no end of its own: its last half second is missing.
    const bool nothingLost = std::all_of(catalog.processes.begin(), catalog.processes.end(), [](const auto &process) {
        return process.droppedRecords == 0 && (!process.rank || process.endedNs);
    });
    return catalog.finished && nothingMissing && nothingLost && catalog.problems.empty();
}

} // namespace

void summarizeAttempts(std::vector<std::unique_ptr<SourceFile>> &files, const std::filesystem::path &runFolder,
                       Catalog &catalog)
{
    for (const auto &file : files) {
        if (!file->readable)
            continue;
        try {
            readDeaths(*file, catalog);
        } catch (const SQLite::Exception &exception) {
            catalog.problems.push_back(explain(file->database.path(), exception));
        }
    }
    fillAttempts(catalog);
    std::optional<run::RunStatus> status;
    if (!runFolder.empty()) {
        if (auto read = run::currentStatus(run::RunFolder(runFolder), realtimeNs()))
            status = std::move(*read);
    }
    if (status && !catalog.attempts.empty() && catalog.attempts.back().attempt == status->attempt) {
        if (auto reason = endReasonFromState(*status))
            catalog.attempts.back().endReason = *reason;
    }
    catalog.finished = isFinished(catalog, status);
    catalog.complete = isComplete(catalog);
}

} // namespace shardscope::store
