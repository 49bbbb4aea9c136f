// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/merge.h"

#include "profiler/store/limits.h"
#include "profiler/store/query.h"
#include "profiler/store/rows.h"
#include "profiler/store/schema.h"
#include "profiler/store/sqlite_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <unistd.h>

namespace shardscope::store {
namespace {

/// Whose id a column is: the table's name, or "" where it is no id of this database.
std::string referredTable(std::string_view column)
{
    constexpr std::string_view kIds[] = {"process", "device",       "lane",       "unit",   "config", "step",
                                         "span",    "communicator", "collective", "memory", "flush"};
    if (column == "parent_unit_id")
        return "unit";
    for (const std::string_view table : kIds) {
        if (column == fmt::format("{}_id", table))
            return std::string(table);
    }
    return {};
}

std::string fileUri(const std::filesystem::path &path)
{
    std::string uri = "file:";
    for (const char c : path.string()) {
        const bool plain =
            std::isalnum(static_cast<unsigned char>(c)) || std::string_view("/-_.~").find(c) != std::string_view::npos;
        uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri + "?mode=ro";
}

class Merger
{
public:
    Merger(const std::filesystem::path &target, const CancelToken &cancel)
        : m_database(target.string(),
                     SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX | SQLite::OPEN_URI,
                     kReaderBusyTimeoutMs)
        , m_cancel(cancel)
    {
        sqlite3_progress_handler(m_database.getHandle(), kCancelEvery, isCancelled, &m_cancel);
        // A target that is half made is thrown away: no journal is needed.
        m_database.exec("PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
        m_database.exec(std::string(schemaSql()));
        m_database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
        m_database.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
    }

    void add(const std::filesystem::path &source)
    {
        SQLite::Statement attach(m_database, "ATTACH ? AS source");
        attach.bind(1, fileUri(source));
        attach.exec();
        attach.tryReset();
        mapNames();
        for (const std::string_view table : tableNames()) {
            if (table == "span" || table == "kernel")
                copyByLane(table);
            else if (table != "name")
                copyTable(table);
        }
        raiseOffsets();
        m_database.exec("DETACH source");
    }

    void enterDeaths()
    {
        for (const char *column : {"exit_code", "signal"}) {
            m_database.exec(fmt::format(
                "UPDATE process SET {0} = coalesce({0}, (SELECT json_extract(e.detail_json, '$.{0}') FROM event e JOIN "
                "process s USING (process_id) WHERE e.kind = 'death' AND s.attempt = process.attempt AND "
                "json_valid(e.detail_json) AND json_extract(e.detail_json, '$.rank') = process.rank)) WHERE rank IS "
                "NOT NULL",
                column));
        }
    }

private:
    static int isCancelled(void *token) { return static_cast<CancelToken *>(token)->cancelled() ? 1 : 0; }

    void mapNames()
    {
        m_database.exec("INSERT OR IGNORE INTO main.name (text) SELECT text FROM source.name ORDER BY name_id;"
                        "DROP TABLE IF EXISTS temp.name_map;"
                        "CREATE TEMP TABLE name_map (old_id INTEGER PRIMARY KEY, new_id INTEGER NOT NULL);"
                        "INSERT INTO temp.name_map SELECT s.name_id, m.name_id FROM source.name s JOIN main.name m "
                        "USING (text)");
    }

    /// The table's columns, and what to select for each from the source `s`.
    std::pair<std::string, std::string> columnsOf(std::string_view table)
    {
        std::vector<std::string> columns, selected;
        Query query(m_database, "SELECT name FROM pragma_table_info(?, 'source')");
        query.bind(table);
        while (query.next()) {
            const std::string column = query.string(0);
            columns.push_back(column);
            if (column == "name_id") {
                selected.push_back("(SELECT new_id FROM temp.name_map WHERE old_id = s.name_id)");
            } else if (const std::string referred = referredTable(column); !referred.empty()) {
                selected.push_back(fmt::format("s.{} + {}", column, m_offsets[referred]));
            } else {
                selected.push_back("s." + column);
            }
        }
        return {fmt::format("{}", fmt::join(columns, ", ")), fmt::format("{}", fmt::join(selected, ", "))};
    }

    void copyTable(std::string_view table)
    {
        const auto [columns, selected] = columnsOf(table);
        m_database.exec(
            fmt::format("INSERT INTO main.{0} ({1}) SELECT {2} FROM source.{0} s", table, columns, selected));
    }

    /// The large tables, in pieces: no piece holds up the source's writer for long.
    void copyByLane(std::string_view table)
    {
        const auto [columns, selected] = columnsOf(table);
        std::vector<int64_t> lanes;
        Query readLanes(m_database, "SELECT lane_id FROM source.lane ORDER BY lane_id");
        while (readLanes.next())
            lanes.push_back(readLanes.integer(0));
        const std::string after =
            fmt::format("FROM source.{} s WHERE lane_id = ? AND (start_ns, span_id) > (?, ?)", table);
        Query insert(m_database, fmt::format("INSERT INTO main.{} ({}) SELECT {} {} AND (start_ns, span_id) <= (?, ?)",
                                             table, columns, selected, after));
        Query lastOfPiece(m_database, fmt::format("SELECT start_ns, span_id {} ORDER BY start_ns, span_id LIMIT 1 "
                                                  "OFFSET {}",
                                                  after, kChunkRows - 1));
        constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
        for (const int64_t lane : lanes) {
            int64_t startNs = std::numeric_limits<int64_t>::min(), spanId = startNs;
            while (startNs != kHighest) {
                const bool more = lastOfPiece.bind(lane, startNs, spanId).next();
                const int64_t lastStartNs = more ? lastOfPiece.integer(0) : kHighest;
                const int64_t lastSpanId = more ? lastOfPiece.integer(1) : kHighest;
                lastOfPiece.reset();
                insert.bind(lane, startNs, spanId, lastStartNs, lastSpanId).next();
                startNs = lastStartNs;
                spanId = lastSpanId;
            }
        }
    }

    void raiseOffsets()
    {
        for (const std::string_view table : tableNames()) {
            const std::string column = fmt::format("{}_id", table);
            if (referredTable(column).empty())
                continue;
            m_offsets[std::string(table)] +=
                m_database.execAndGet(fmt::format("SELECT ifnull(max({}), 0) FROM source.{}", column, table))
                    .getInt64();
        }
    }

    SQLite::Database m_database;
    CancelToken m_cancel;
    std::map<std::string, int64_t> m_offsets; ///< table → what is added to the source's ids
};

} // namespace

Result<> mergeDatabases(const std::vector<std::filesystem::path> &sources, const std::filesystem::path &target,
                        const CancelToken &cancel)
{
    std::error_code error;
    if (target.has_parent_path())
        std::filesystem::create_directories(target.parent_path(), error);
    if (error)
        return fail("Can't make the folder {}: {}.", target.parent_path().string(), error.message());
    const std::filesystem::path partial = fmt::format("{}.{}.part", target.string(), getpid());
    std::filesystem::remove(partial, error);
    std::filesystem::path current = partial;
    try {
        Merger merger(partial, cancel);
        for (const std::filesystem::path &source : sources) {
            current = source;
            merger.add(source);
        }
        current = partial;
        merger.enterDeaths();
    } catch (const SQLite::Exception &exception) {
        std::filesystem::remove(partial, error);
        if (exception.getErrorCode() == SQLITE_INTERRUPT)
            return fail("Cancelled.");
        return fail("The recording can't be merged: {}", explain(current, exception));
    }
    std::filesystem::rename(partial, target, error);
    if (error)
        return fail("Can't write {}: {}.", target.string(), error.message());
    return {};
}

} // namespace shardscope::store
