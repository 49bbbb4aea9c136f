// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/recording.h"

#include "core/run/places.h"
#include "core/run/run_folder.h"
#include "profiler/store/catalog_reader.h"
#include "profiler/store/discovery.h"
#include "profiler/store/merge.h"
#include "profiler/store/readers.h"
#include "profiler/store/sql_query.h"
#include "profiler/store/sqlite_error.h"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <system_error>

namespace shardscope::store {
namespace {

/// Ranks enter a collective at different times; parts this far outside a range are looked at too.
constexpr int64_t kJoinSlackNs = 30'000'000'000;

tl::unexpected<Error> readError(const std::filesystem::path &path, const SQLite::Exception &exception)
{
    if (exception.getErrorCode() == SQLITE_INTERRUPT)
        return fail("Cancelled.");
    return fail("{}", explain(path, exception));
}

int64_t saturatingAdd(int64_t value, int64_t change)
{
    int64_t sum = 0;
    if (__builtin_add_overflow(value, change, &sum))
        return change < 0 ? kBeginning : kEnd;
    return sum;
}

/// Where a run's state.json would be; empty for a single database.
std::filesystem::path runFolderOf(const std::filesystem::path &path)
{
    std::error_code error;
    return std::filesystem::is_directory(path, error) && run::RunFolder(path).looksLikeRun() ? path
                                                                                             : std::filesystem::path();
}

} // namespace

struct Recording::State
{
    struct ProcessSource
    {
        SourceFile *file = nullptr;
        int64_t processId = 0;
    };

    Result<> findFiles();
    Result<> readCatalog();
    Result<ProcessSource> sourceOf(Index process) const;
    Result<SourceFile *> laneSource(Index lane) const;
    Result<std::filesystem::path> mergedDatabase(const CancelToken &cancel) const;
    std::string mergeSignature() const;

    std::filesystem::path path;
    std::filesystem::path cacheFolder;
    std::vector<std::unique_ptr<SourceFile>> files;
    std::vector<ProcessSource> processSources; ///< by Index
    std::unordered_map<std::string, Index> nameIndex;
    std::shared_ptr<const Catalog> catalog = std::make_shared<Catalog>();
};

Result<Recording> Recording::open(const std::filesystem::path &path, const RecordingOptions &options)
{
    auto state = std::make_unique<State>();
    std::error_code error;
    state->path = std::filesystem::absolute(path, error);
    if (error)
        state->path = path;
    state->cacheFolder = options.cacheFolder.empty() ? run::cacheDirectory() : options.cacheFolder;
    Recording recording(std::move(state));
    if (auto read = recording.refresh(); !read)
        return tl::unexpected(read.error());
    return recording;
}

Recording::Recording(std::unique_ptr<State> state)
    : m_state(std::move(state))
{
}
Recording::Recording(Recording &&) noexcept = default;
Recording &Recording::operator=(Recording &&) noexcept = default;
Recording::~Recording() = default;

std::shared_ptr<const Catalog> Recording::catalog() const
{
    return m_state->catalog;
}

Result<std::shared_ptr<const Catalog>> Recording::refresh()
{
    if (auto found = m_state->findFiles(); !found)
        return tl::unexpected(found.error());
    if (auto read = m_state->readCatalog(); !read)
        return tl::unexpected(read.error());
    return m_state->catalog;
}

Result<> Recording::State::findFiles()
{
    const auto found = findDatabases(path);
    if (!found)
        return tl::unexpected(found.error());
    for (const std::filesystem::path &database : *found) {
        const bool known = std::any_of(files.begin(), files.end(),
                                       [&](const auto &file) { return file->database.path() == database; });
        if (!known)
            files.push_back(std::make_unique<SourceFile>(database, cacheFolder));
    }
    return {};
}

Result<> Recording::State::readCatalog()
{
    auto next = std::make_shared<Catalog>(*catalog);
    next->path = path;
    next->problems.clear();
    std::vector<SourceFile *> readable;
    for (const auto &file : files) {
        const auto prepared = file->database.prepare();
        if (prepared) {
            readable.push_back(file.get());
            continue;
        }
        const auto &[trouble, text] = prepared.error();
        if (trouble == FileTrouble::Newer || (trouble == FileTrouble::Unreadable && files.size() == 1))
            return fail("{}", text);
        if (trouble == FileTrouble::Unreadable)
            next->problems.push_back(text);
    }
    // From here on nothing returns: the files' maps and the new catalogue grow together.
    for (SourceFile *file : readable) {
        try {
            readSmallTables(*file, nameIndex, *next);
            file->readable = true;
        } catch (const SQLite::Exception &exception) {
            next->problems.push_back(explain(file->database.path(), exception));
        }
    }
    processSources.assign(next->processes.size(), {});
    for (const auto &file : files) {
        for (const auto &[processId, index] : file->processes)
            processSources[static_cast<size_t>(index)] = {file.get(), processId};
    }
    summarizeAttempts(files, runFolderOf(path), *next);
    catalog = std::move(next);
    return {};
}

Result<Recording::State::ProcessSource> Recording::State::sourceOf(Index process) const
{
    if (process < 0 || static_cast<size_t>(process) >= processSources.size())
        return fail("The recording has no process number {}.", process);
    return processSources[static_cast<size_t>(process)];
}

Result<SourceFile *> Recording::State::laneSource(Index lane) const
{
    if (lane < 0 || static_cast<size_t>(lane) >= catalog->lanes.size())
        return fail("The recording has no lane number {}.", lane);
    auto source = sourceOf(catalog->lanes[static_cast<size_t>(lane)].process);
    if (!source)
        return tl::unexpected(source.error());
    return source->file;
}

Result<std::vector<StepInfo>> Recording::steps(Index process, int64_t fromNumber) const
{
    const auto source = m_state->sourceOf(process);
    if (!source)
        return tl::unexpected(source.error());
    try {
        return readSteps(*source->file, *m_state->catalog, process, source->processId, fromNumber);
    } catch (const SQLite::Exception &exception) {
        return readError(source->file->database.path(), exception);
    }
}

Result<SpanColumns> Recording::spans(Index lane, int64_t fromNs, int64_t toNs, const CancelToken &cancel) const
{
    const auto file = m_state->laneSource(lane);
    if (!file)
        return tl::unexpected(file.error());
    try {
        const EpochRange range = toEpoch(*m_state->catalog, fromNs, toNs);
        return readSpans(**file, *m_state->catalog, lane, range, true, cancel);
    } catch (const SQLite::Exception &exception) {
        return readError((*file)->database.path(), exception);
    }
}

Result<SpanColumns> Recording::spansStarting(Index lane, int64_t fromNs, int64_t toNs, const CancelToken &cancel) const
{
    const auto file = m_state->laneSource(lane);
    if (!file)
        return tl::unexpected(file.error());
    try {
        const EpochRange range = toEpoch(*m_state->catalog, fromNs, toNs);
        return readSpans(**file, *m_state->catalog, lane, range, false, cancel);
    } catch (const SQLite::Exception &exception) {
        return readError((*file)->database.path(), exception);
    }
}

Result<std::vector<CollectiveCall>> Recording::collectives(int64_t fromNs, int64_t toNs,
                                                           const CancelToken &cancel) const
{
    CallTable table;
    const EpochRange range =
        toEpoch(*m_state->catalog, saturatingAdd(fromNs, -kJoinSlackNs), saturatingAdd(toNs, kJoinSlackNs));
    for (const auto &file : m_state->files) {
        if (!file->readable)
            continue;
        try {
            readCollectives(*file, *m_state->catalog, range, cancel, table);
        } catch (const SQLite::Exception &exception) {
            return readError(file->database.path(), exception);
        }
    }
    return finishCollectives(std::move(table), fromNs, toNs);
}

Result<std::vector<MemoryColumns>> Recording::memory(Index process, int64_t fromNs, int64_t toNs,
                                                     const CancelToken &cancel) const
{
    const auto source = m_state->sourceOf(process);
    if (!source)
        return tl::unexpected(source.error());
    try {
        const EpochRange range = toEpoch(*m_state->catalog, fromNs, toNs);
        return readMemory(*source->file, *m_state->catalog, process, source->processId, range, cancel);
    } catch (const SQLite::Exception &exception) {
        return readError(source->file->database.path(), exception);
    }
}

Result<std::optional<MemoryPeak>> Recording::memoryPeak(Index process, std::optional<int64_t> stepNumber) const
{
    const auto source = m_state->sourceOf(process);
    if (!source)
        return tl::unexpected(source.error());
    try {
        return readMemoryPeak(*source->file, *m_state->catalog, process, source->processId, stepNumber);
    } catch (const SQLite::Exception &exception) {
        return readError(source->file->database.path(), exception);
    }
}

Result<std::vector<EventInfo>> Recording::events(const EventPosition &after) const
{
    std::vector<EventInfo> events;
    for (const auto &file : m_state->files) {
        if (!file->readable)
            continue;
        try {
            readEvents(*file, *m_state->catalog, after, events);
        } catch (const SQLite::Exception &exception) {
            return readError(file->database.path(), exception);
        }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const EventInfo &a, const EventInfo &b) { return a.timeNs < b.timeNs; });
    return events;
}

Result<std::vector<MetricSeries>> Recording::metrics(Index process, int64_t fromNs, const CancelToken &cancel) const
{
    const auto source = m_state->sourceOf(process);
    if (!source)
        return tl::unexpected(source.error());
    try {
        const int64_t fromEpochNs = toEpoch(*m_state->catalog, fromNs, kEnd).fromNs;
        return readMetrics(*source->file, *m_state->catalog, process, source->processId, fromEpochNs, cancel);
    } catch (const SQLite::Exception &exception) {
        return readError(source->file->database.path(), exception);
    }
}

Result<std::vector<Tail>> Recording::tail(const std::vector<int64_t> &seen) const
{
    std::vector<Tail> tails;
    for (size_t i = 0; i < m_state->processSources.size(); ++i) {
        const auto &source = m_state->processSources[i];
        if (!source.file)
            continue;
        try {
            tails.push_back(readTail(*source.file, *m_state->catalog, static_cast<Index>(i), source.processId,
                                     i < seen.size() ? seen[i] : 0));
        } catch (const SQLite::Exception &exception) {
            return readError(source.file->database.path(), exception);
        }
    }
    return tails;
}

std::string Recording::State::mergeSignature() const
{
    std::string signature = fmt::format("schema {};", kSchemaVersion);
    for (const auto &file : files)
        signature += file->database.path().string() + ":" + file->database.signature() + ";";
    return signature;
}

/// The cached merge of the databases as they are now; made where there is none.
Result<std::filesystem::path> Recording::State::mergedDatabase(const CancelToken &cancel) const
{
    const std::string prefix = fmt::format("{:016x}-", std::hash<std::string>{}(path.string()));
    const std::filesystem::path folder = cacheFolder / "merged";
    const std::filesystem::path merged =
        folder / fmt::format("{}{:016x}.sqlite", prefix, std::hash<std::string>{}(mergeSignature()));
    std::error_code error;
    if (std::filesystem::exists(merged, error))
        return merged;
    // What was merged of this recording before is out of date.
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::error_code ignored;
        if (it->path().filename().string().starts_with(prefix) && it->path().extension() == ".sqlite")
            std::filesystem::remove(it->path(), ignored);
    }
    std::vector<std::filesystem::path> sources;
    for (const auto &file : files) {
        if (file->readable)
            sources.push_back(file->database.readablePath());
    }
    if (auto done = mergeDatabases(sources, merged, cancel); !done)
        return tl::unexpected(done.error());
    return merged;
}

Result<SqlResult> Recording::sql(const std::string &query, size_t maxRows, const CancelToken &cancel) const
{
    const State &state = *m_state;
    const auto readable =
        std::count_if(state.files.begin(), state.files.end(), [](auto &file) { return file->readable; });
    if (readable == 0)
        return fail("{} has no database yet: nothing has been recorded.", state.path.string());
    std::optional<DatabaseFile> merged;
    DatabaseFile *file = nullptr;
    if (readable == 1) {
        file =
            &(*std::find_if(state.files.begin(), state.files.end(), [](auto &one) { return one->readable; }))->database;
    } else {
        const auto path = state.mergedDatabase(cancel);
        if (!path)
            return tl::unexpected(path.error());
        merged.emplace(*path, state.cacheFolder);
        file = &*merged;
    }
    try {
        DatabaseFile::Access access(*file, &cancel);
        return runQuery(access.database(), query, maxRows);
    } catch (const SQLite::Exception &exception) {
        return readError(file->path(), exception);
    }
}

} // namespace shardscope::store
