// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/sql_query.h"

#include "core/base/text.h"
#include "profiler/store/schema.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

namespace shardscope::store {
namespace {

/// Pragmas that only tell. The others change the connection or the file.
bool isTellingPragma(std::string_view name)
{
    constexpr std::array<std::string_view, 9> kTelling = {"table_info",   "table_xinfo",    "table_list",
                                                          "index_list",   "index_info",     "index_xinfo",
                                                          "user_version", "application_id", "page_count"};
    return std::find(kTelling.begin(), kTelling.end(), name) != kTelling.end();
}

int authorize(void *, int action, const char *first, const char *second, const char *, const char *)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_PRAGMA: {
        const bool tells = isTellingPragma(first ? first : "");
        const bool sets = second && std::string_view(first).ends_with("_version");
        return tells && !sets ? SQLITE_OK : SQLITE_DENY;
    }
    default:
        return SQLITE_DENY;
    }
}

/// The authorizer for the length of a scope.
class ReadOnlyGuard
{
public:
    explicit ReadOnlyGuard(sqlite3 *database)
        : m_database(database)
    {
        sqlite3_set_authorizer(database, authorize, nullptr);
    }
    ~ReadOnlyGuard() { sqlite3_set_authorizer(m_database, nullptr, nullptr); }
    ReadOnlyGuard(const ReadOnlyGuard &) = delete;
    ReadOnlyGuard &operator=(const ReadOnlyGuard &) = delete;

private:
    sqlite3 *m_database;
};

struct Finalize
{
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

/// "no such table: spans" → " Did you mean span?"
std::string hintFor(const std::string &message)
{
    constexpr std::string_view kNoTable = "no such table: ";
    const size_t at = message.find(kNoTable);
    if (at == std::string::npos)
        return {};
    const std::vector<std::string> tables(tableNames().begin(), tableNames().end());
    if (const auto nearest = nearestName(std::string_view(message).substr(at + kNoTable.size()), tables))
        return fmt::format(" Did you mean {}?", *nearest);
    return " docs/contract.md lists the tables.";
}

tl::unexpected<Error> sqlError(sqlite3 *database, const std::string &query)
{
    const int code = sqlite3_errcode(database);
    const std::string message = sqlite3_errmsg(database);
    if (code == SQLITE_AUTH)
        return fail("Only reading statements are allowed here ({}).", message);
    if (code == SQLITE_INTERRUPT)
        return fail("Cancelled.");
    std::string where;
    if (const int offset = sqlite3_error_offset(database); offset >= 0) {
        where = fmt::format(" at \"{}\" (character {})", query.substr(static_cast<size_t>(offset), 20), offset + 1);
    }
    return fail("SQL error: {}{}.{}", message, where, hintFor(message));
}

bool isBlank(std::string_view text)
{
    return text.find_first_not_of(" \t\r\n;") == std::string_view::npos;
}

SqlValue valueAt(sqlite3_stmt *statement, int column)
{
    const auto bytes = [&](const void *data) {
        return std::string(static_cast<const char *>(data),
                           static_cast<size_t>(sqlite3_column_bytes(statement, column)));
    };
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
        return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
        return bytes(sqlite3_column_text(statement, column));
    case SQLITE_BLOB: {
        const void *data = sqlite3_column_blob(statement, column);
        return SqlBlob{data ? bytes(data) : std::string()};
    }
    default:
        return std::monostate();
    }
}

Result<Statement> prepare(sqlite3 *database, const std::string &query)
{
    sqlite3_stmt *raw = nullptr;
    const char *tail = nullptr;
    if (sqlite3_prepare_v2(database, query.c_str(), static_cast<int>(query.size()), &raw, &tail) != SQLITE_OK)
        return sqlError(database, query);
    Statement statement(raw);
    if (!statement)
        return fail("There is no SQL statement.");
    if (!isBlank(tail))
        return fail("One statement at a time: there is more after the first one: \"{}\".", tail);
    if (!sqlite3_stmt_readonly(statement.get()))
        return fail("Only reading statements are allowed here.");
    return statement;
}

} // namespace

Result<SqlResult> runQuery(SQLite::Database &database, const std::string &query, size_t maxRows)
{
    sqlite3 *handle = database.getHandle();
    if (isBlank(query))
        return fail("There is no SQL statement.");
    const ReadOnlyGuard guard(handle);
    auto statement = prepare(handle, query);
    if (!statement)
        return tl::unexpected(statement.error());
    SqlResult result;
    const int columns = sqlite3_column_count(statement->get());
    for (int column = 0; column < columns; ++column)
        result.columns.emplace_back(sqlite3_column_name(statement->get(), column));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement->get())) == SQLITE_ROW) {
        if (result.rows.size() == maxRows) {
            result.truncated = true;
            return result;
        }
        auto &row = result.rows.emplace_back();
        for (int column = 0; column < columns; ++column)
            row.push_back(valueAt(statement->get(), column));
    }
    if (code != SQLITE_DONE)
        return sqlError(handle, query);
    return result;
}

} // namespace shardscope::store
