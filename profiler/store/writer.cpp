// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/writer.h"

#include "core/base/clock.h"
#include "profiler/store/deletion.h"
#include "profiler/store/limits.h"
#include "profiler/store/pending_rows.h"
#include "profiler/store/schema.h"
#include "profiler/store/sqlite_error.h"
#include "profiler/store/step_retention.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace shardscope::store {
namespace {

constexpr int kPageBytes = 16 * 1024; ///< measured fastest for inserts and range scans
/// How long close() waits for readers, which hold a database for 200 ms at most.
constexpr int kCloseTimeoutMs = 2000;

struct StringHash
{
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

template <typename Rows>
void insertAll(Insert &insert, const Rows &rows)
{
    for (const auto &row : rows)
        insert(row);
}

void makeTables(SQLite::Database &database, const std::filesystem::path &path)
{
    database.exec(fmt::format("PRAGMA page_size = {}", kPageBytes));
    const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
    if (mode != "wal") {
        throw std::runtime_error(
            fmt::format("{} is on a file system without shared memory (a network folder?), where a database can't be "
                        "written and read at once. Record to a local folder and move it there at the end.",
                        path.string()));
    }
    SQLite::Transaction transaction(database);
    database.exec(std::string(schemaSql()));
    database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
    database.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
    transaction.commit();
}

Result<> checkVersion(SQLite::Database &database, const std::filesystem::path &path)
{
    const int application = database.execAndGet("PRAGMA application_id").getInt();
    const int version = database.execAndGet("PRAGMA user_version").getInt();
    if (application != kApplicationId)
        return fail("{} exists and is not a recording of Shardscope. Choose another folder.", path.string());
    if (version != kSchemaVersion) {
        return fail("{} exists with schema version {}; this program writes {}. Record to another folder.",
                    path.string(), version, kSchemaVersion);
    }
    return {};
}

} // namespace

struct Writer::State
{
    State(const std::filesystem::path &path, const WriterOptions &options)
        : path(path)
        , options(options)
        , database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX,
                   kWriterBusyTimeoutMs)
        , retention(options.retention)
    {
    }

    void readWhatIsThere();
    FlushRow describeCommit() const;
    void writeRows(const FlushRow &flush);
    void applyRetention(std::optional<StepRetention::Deletion> &deletion);
    void giveUpBulk();
    void notePeaks();
    void tightenIfTooLarge();
    int64_t usedBytes();
    /// An event of the recording, each once.
    enum class TooLarge { FewerSteps, FirstSteps, OldMetrics, Nothing };
    void say(TooLarge what, std::string text);

    std::filesystem::path path;
    WriterOptions options;
    SQLite::Database database;
    std::optional<Inserts> inserts;
    StepRetention retention;
    LastingRows lasting;
    BulkRows bulk;
    std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>> names;
    LaneClocks lanes;
    /// The step peak with the most bytes of each place: its units are kept.
    std::map<std::string, std::pair<int64_t, int64_t>> highestPeaks; ///< place → bytes, memory id
    std::set<TooLarge> said;
    int64_t nextFlushId = 1;
    int64_t droppedSinceCommit = 0;
    int64_t spansWritten = 0;
    int64_t recordsDropped = 0;
};

Result<Writer> Writer::open(const std::filesystem::path &path, const WriterOptions &options)
{
    try {
        auto state = std::make_unique<State>(path, options);
        if (state->database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0)
            makeTables(state->database, path);
        if (auto checked = checkVersion(state->database, path); !checked)
            return tl::unexpected(checked.error());
        state->database.exec("PRAGMA journal_mode = WAL");
        state->database.exec("PRAGMA synchronous = NORMAL");
        state->readWhatIsThere();
        state->inserts.emplace(state->database);
        return Writer(std::move(state));
    } catch (const SQLite::Exception &exception) {
        return fail("{}", explain(path, exception));
    } catch (const std::exception &exception) {
        return fail("{}", exception.what());
    }
}

Writer::Writer(std::unique_ptr<State> state)
    : m_state(std::move(state))
{
}
Writer::Writer(Writer &&) noexcept = default;

Writer &Writer::operator=(Writer &&other) noexcept
{
    if (this != &other) {
        if (m_state)
            (void)close();
        m_state = std::move(other.m_state);
    }
    return *this;
}

Writer::~Writer()
{
    if (m_state)
        (void)close();
}

void Writer::State::readWhatIsThere()
{
    SQLite::Statement readNames(database, "SELECT name_id, text FROM name");
    while (readNames.executeStep())
        names.emplace(readNames.getColumn(1).getString(), readNames.getColumn(0).getInt64());
    SQLite::Statement readLanes(database, "SELECT lane_id, kind = 'thread' FROM lane");
    while (readLanes.executeStep())
        lanes[readLanes.getColumn(0).getInt64()] =
            readLanes.getColumn(1).getInt() != 0 ? LaneClock::Host : LaneClock::Device;
    nextFlushId = database.execAndGet("SELECT ifnull(max(flush_id), 0) + 1 FROM flush").getInt64();
}

int64_t Writer::nameId(std::string_view text)
{
    if (const auto found = m_state->names.find(text); found != m_state->names.end())
        return found->second;
    const auto id = static_cast<int64_t>(m_state->names.size()) + 1;
    m_state->names.emplace(text, id);
    m_state->lasting.names.push_back({id, std::string(text)});
    return id;
}

Result<int64_t> Writer::nextId(std::string_view table) const
{
    const auto &tables = tableNames();
    if (std::find(tables.begin(), tables.end(), table) == tables.end())
        return fail("A recording has no table {}.", table);
    try {
        return m_state->database.execAndGet(fmt::format("SELECT ifnull(max({0}_id), 0) + 1 FROM {0}", table))
            .getInt64();
    } catch (const SQLite::Exception &exception) {
        return fail("{}", explain(m_state->path, exception));
    }
}

void Writer::put(const MetaRow &row)
{
    m_state->lasting.meta.push_back(row);
}
void Writer::put(const ProcessRow &row)
{
    m_state->lasting.processes.push_back(row);
}
void Writer::put(const DeviceRow &row)
{
    m_state->lasting.devices.push_back(row);
}
void Writer::put(const LaneRow &row)
{
    m_state->lanes[row.laneId] = row.kind == LaneKind::Thread ? LaneClock::Host : LaneClock::Device;
    m_state->lasting.lanes.push_back(row);
}
void Writer::put(const UnitRow &row)
{
    m_state->lasting.units.push_back(row);
}
void Writer::put(const ConfigRow &row)
{
    m_state->lasting.configs.push_back(row);
}
void Writer::put(const StepRow &row)
{
    m_state->retention.stepBegan(row.stepId, row.startNs);
    m_state->lasting.steps.push_back(row);
}
void Writer::put(const CommunicatorRow &row)
{
    m_state->lasting.communicators.push_back(row);
}
void Writer::add(const EventRow &row)
{
    m_state->lasting.events.push_back(row);
}
void Writer::put(const CollectiveRow &row)
{
    m_state->bulk.collectives.push_back(row);
}
void Writer::add(const SpanRow &row)
{
    m_state->bulk.spans.push_back(row);
}
void Writer::add(const KernelRow &row)
{
    m_state->bulk.kernels.push_back(row);
}
void Writer::add(const MemoryRow &row)
{
    m_state->bulk.memory.push_back(row);
}
void Writer::add(const MemoryPeakRow &row)
{
    m_state->bulk.memoryPeaks.push_back(row);
}
void Writer::add(const AllocationRow &row)
{
    m_state->bulk.allocations.push_back(row);
}
void Writer::add(const SegmentRow &row)
{
    m_state->bulk.segments.push_back(row);
}
void Writer::add(const MetricRow &row)
{
    // A NaN would be NULL, which a metric can't be: not measured is no row.
    if (std::isfinite(row.value))
        m_state->bulk.metrics.push_back(row);
}
void Writer::add(const ClockRow &row)
{
    m_state->bulk.clocks.push_back(row);
}

Result<> Writer::flush(int64_t droppedRecords)
{
    State &state = *m_state;
    state.droppedSinceCommit += droppedRecords;
    state.recordsDropped += droppedRecords;
    // Clustered as the table is: neighbours go to the same page.
    std::sort(state.bulk.spans.begin(), state.bulk.spans.end(), [](const SpanRow &a, const SpanRow &b) {
        return std::tie(a.laneId, a.startNs, a.spanId) < std::tie(b.laneId, b.startNs, b.spanId);
    });
    const FlushRow flush = state.describeCommit();
    std::optional<StepRetention::Deletion> deletion;
    try {
        SQLite::Transaction transaction(state.database);
        state.tightenIfTooLarge();
        state.writeRows(flush);
        state.applyRetention(deletion);
        transaction.commit();
    } catch (const SQLite::Exception &exception) {
        state.giveUpBulk();
        return fail("{}", explain(state.path, exception));
    } catch (const std::exception &exception) { // bad_alloc
        state.giveUpBulk();
        return fail("{} could not be written: {}.", state.path.string(), exception.what());
    }
    if (deletion)
        state.retention.done(*deletion);
    state.notePeaks();
    state.spansWritten += flush.spans;
    state.droppedSinceCommit = 0;
    ++state.nextFlushId;
    state.lasting = {};
    state.bulk = {};
    return {};
}

void Writer::State::giveUpBulk()
{
    const int64_t lost = bulk.count();
    droppedSinceCommit += lost;
    recordsDropped += lost;
    bulk = {};
}

FlushRow Writer::State::describeCommit() const
{
    FlushRow flush{.flushId = nextFlushId,
                   .processId = options.processId,
                   .writtenNs = realtimeNs(),
                   .spans = static_cast<int64_t>(bulk.spans.size()),
                   .droppedRecords = droppedSinceCommit};
    const auto cover = [&flush](int64_t startNs, int64_t endNs) {
        flush.firstStartNs = std::min(flush.firstStartNs.value_or(startNs), startNs);
        flush.lastEndNs = std::max(flush.lastEndNs.value_or(endNs), endNs);
    };
    for (const SpanRow &span : bulk.spans)
        cover(span.startNs, span.startNs + span.durationNs.value_or(0));
    for (const CollectiveRow &collective : bulk.collectives)
        cover(collective.enqueuedNs, collective.endedNs.value_or(collective.enqueuedNs));
    return flush;
}

void Writer::State::writeRows(const FlushRow &flush)
{
    insertAll(inserts->meta, lasting.meta);
    insertAll(inserts->process, lasting.processes);
    insertAll(inserts->device, lasting.devices);
    insertAll(inserts->lane, lasting.lanes);
    insertAll(inserts->name, lasting.names);
    insertAll(inserts->unit, lasting.units);
    insertAll(inserts->config, lasting.configs);
    insertAll(inserts->communicator, lasting.communicators);
    for (const StepRow &step : lasting.steps)
        inserts->step(StoredStep{step, retention.spansKept(step.stepId)});
    insertAll(inserts->event, lasting.events);
    insertAll(inserts->span, bulk.spans);
    insertAll(inserts->kernel, bulk.kernels);
    insertAll(inserts->collective, bulk.collectives);
    insertAll(inserts->memory, bulk.memory);
    insertAll(inserts->memoryPeak, bulk.memoryPeaks);
    insertAll(inserts->allocation, bulk.allocations);
    insertAll(inserts->segment, bulk.segments);
    insertAll(inserts->metric, bulk.metrics);
    insertAll(inserts->clock, bulk.clocks);
    inserts->flush(flush);
}

void Writer::State::notePeaks()
{
    for (const MemoryRow &row : bulk.memory) {
        auto &[bytes, memoryId] = highestPeaks[row.place];
        if (row.isStepPeak && row.allocatedBytes > bytes) {
            bytes = row.allocatedBytes;
            memoryId = row.memoryId;
        }
    }
}

int64_t Writer::State::usedBytes()
{
    const int64_t pages = database.execAndGet("PRAGMA page_count").getInt64();
    const int64_t free = database.execAndGet("PRAGMA freelist_count").getInt64();
    return (pages - free) * kPageBytes;
}

void Writer::State::say(TooLarge what, std::string text)
{
    if (!said.insert(what).second)
        return;
    lasting.events.push_back({.processId = options.processId,
                              .timeNs = realtimeNs(),
                              .kind = EventKind::Recording,
                              .text = std::move(text)});
}

/// Gives up what is missed least first: spans of the newest steps but one, of the first steps, old metrics.
void Writer::State::tightenIfTooLarge()
{
    if (options.retention.maxBytes <= 0 || usedBytes() <= options.retention.maxBytes)
        return;
    switch (retention.tighten()) {
    case StepRetention::Tightened::FewerSteps:
        say(TooLarge::FewerSteps, fmt::format("The recording has reached record.max_gib: fewer steps keep their spans "
                                              "from now on (the newest {}). Every step keeps its sums.",
                                              retention.keepSteps()));
        return;
    case StepRetention::Tightened::FirstSteps:
        say(TooLarge::FirstSteps, "The recording has reached record.max_gib with few steps: the first steps "
                                  "(record.keep_first) don't keep their spans any longer. Every step keeps its sums.");
        return;
    case StepRetention::Tightened::Nothing:
        break;
    }
    if (deleteOldestMetrics(database)) {
        say(TooLarge::OldMetrics, "The recording has reached record.max_gib with the newest step alone: the oldest "
                                  "metrics are deleted. Every step keeps its sums and its peak.");
        return;
    }
    say(TooLarge::Nothing, "The recording is larger than record.max_gib and grows on: the newest step's spans, the "
                           "last hour's metrics and the sums of all steps are left, and they stay. Give record.max_gib "
                           "more.");
}

void Writer::State::applyRetention(std::optional<StepRetention::Deletion> &deletion)
{
    deletion = retention.due();
    if (!deletion)
        return;
    deleteSpans(database, lanes, *deletion);
    std::vector<int64_t> peaksKept;
    for (const auto &[place, peak] : highestPeaks)
        peaksKept.push_back(peak.second);
    deleteMemory(database, peaksKept, *deletion);
    database.exec(fmt::format("UPDATE step SET spans_kept = 0 WHERE step_id BETWEEN {} AND {}", deletion->firstStepId,
                              deletion->lastStepId));
}

Result<> Writer::close(int64_t droppedRecords)
{
    const Result<> flushed = flush(droppedRecords);
    const std::unique_ptr<State> state = std::move(m_state);
    try {
        state->inserts.reset();
        state->database.setBusyTimeout(kCloseTimeoutMs);
        state->database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        // Needs the database for itself. With a reader that stays, the log stays too, and SQLite removes it with the
        // last connection: nothing is lost, so it is no error.
        (void)state->database.tryExec("PRAGMA journal_mode = DELETE");
    } catch (const SQLite::Exception &exception) {
        if (flushed)
            return fail("{}", explain(state->path, exception));
    }
    return flushed;
}

int64_t Writer::spansWritten() const
{
    return m_state->spansWritten;
}

int64_t Writer::recordsDropped() const
{
    return m_state->recordsDropped;
}

} // namespace shardscope::store
