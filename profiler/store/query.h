// SPDX-License-Identifier: Apache-2.0
// A prepared statement for reading. SQLite::Statement counts references for each column it reads; a timeline reads
// tens of millions of them.
#pragma once

#include "core/base/names.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::store {

/// Throws SQLite::Exception. Columns and parameters count from 0.
class Query
{
public:
    Query(SQLite::Database &database, std::string_view sql)
        : m_database(database.getHandle())
    {
        sqlite3_stmt *statement = nullptr;
        const int code = sqlite3_prepare_v2(m_database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
        m_statement.reset(statement);
        if (code != SQLITE_OK)
            throw SQLite::Exception(m_database, code);
    }

    template <typename... Values>
    Query &bind(const Values &...values)
    {
        sqlite3_reset(m_statement.get());
        int index = 0;
        (bindOne(++index, values), ...);
        return *this;
    }

    /// The next row; false after the last one.
    bool next()
    {
        const int code = sqlite3_step(m_statement.get());
        if (code != SQLITE_ROW && code != SQLITE_DONE)
            throw SQLite::Exception(m_database, code);
        return code == SQLITE_ROW;
    }

    /// Ends the read, and with it the transaction.
    void reset() { sqlite3_reset(m_statement.get()); }

    bool isNull(int column) const { return sqlite3_column_type(m_statement.get(), column) == SQLITE_NULL; }
    int64_t integer(int column) const { return sqlite3_column_int64(m_statement.get(), column); }
    int64_t integerOr(int column, int64_t otherwise) const { return isNull(column) ? otherwise : integer(column); }
    double real(int column) const { return sqlite3_column_double(m_statement.get(), column); }
    /// Valid until the next row. NULL is "".
    std::string_view text(int column) const
    {
        const auto *bytes = reinterpret_cast<const char *>(sqlite3_column_text(m_statement.get(), column));
        return bytes ? std::string_view(bytes, static_cast<size_t>(sqlite3_column_bytes(m_statement.get(), column)))
                     : std::string_view();
    }
    std::string string(int column) const { return std::string(text(column)); }
    std::optional<int64_t> optionalInteger(int column) const
    {
        return isNull(column) ? std::nullopt : std::optional<int64_t>(integer(column));
    }
    std::optional<double> optionalReal(int column) const
    {
        return isNull(column) ? std::nullopt : std::optional<double>(real(column));
    }
    /// A word of the vocabulary; `otherwise` where a newer program has written one that this one does not know.
    template <typename E>
    E word(int column, E otherwise) const
    {
        return fromText<E>(text(column)).value_or(otherwise);
    }
    template <typename E>
    std::optional<E> optionalWord(int column) const
    {
        return fromText<E>(text(column));
    }

private:
    struct Finalize
    {
        void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
    };

    void check(int code)
    {
        if (code != SQLITE_OK)
            throw SQLite::Exception(m_database, code);
    }
    void bindOne(int index, int64_t value) { check(sqlite3_bind_int64(m_statement.get(), index, value)); }
    void bindOne(int index, std::string_view value)
    {
        check(sqlite3_bind_text(m_statement.get(), index, value.data(), static_cast<int>(value.size()),
                                SQLITE_TRANSIENT));
    }

    sqlite3 *m_database;
    std::unique_ptr<sqlite3_stmt, Finalize> m_statement;
};

} // namespace shardscope::store
