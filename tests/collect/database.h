// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardscope::collect {

/// A recording as SQL sees it: the tests read it by another way than the program does.
class Database
{
public:
    explicit Database(const std::filesystem::path &path)
        : m_database(path.string(), SQLite::OPEN_READONLY)
    {
    }

    /// Rows as text, columns joined by "|", NULL as "-".
    std::vector<std::string> rows(const std::string &sql)
    {
        SQLite::Statement query(m_database, sql);
        std::vector<std::string> rows;
        while (query.executeStep()) {
            std::string row;
            for (int i = 0; i < query.getColumnCount(); ++i)
                row +=
                    (i ? "|" : "") + (query.getColumn(i).isNull() ? std::string("-") : query.getColumn(i).getString());
            rows.push_back(row);
        }
        return rows;
    }
    int64_t number(const std::string &sql) { return m_database.execAndGet(sql).getInt64(); }

private:
    SQLite::Database m_database;
};

} // namespace shardscope::collect
