// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardscope::test {

/// A database by SQLite alone, apart from the code under test. Times are epoch nanoseconds. Throws std::runtime_error
/// with SQLite's message. Link SQLiteCpp.
class PlainSql
{
public:
    explicit PlainSql(const std::filesystem::path &database)
        : m_database(database.string(), SQLite::OPEN_READONLY)
    {
    }
    /// A rank's of a run of two ranks; the other one's is attached as `other`.
    PlainSql(const std::filesystem::path &run, int rank)
        : PlainSql(ofRank(run, rank))
    {
        SQLite::Statement attach(m_database, "ATTACH ? AS other");
        attach.bind(1, ofRank(run, 1 - rank).string());
        attach.exec();
    }

    using Row = std::vector<std::string>;
    /// All rows as texts; NULL is "-".
    std::vector<Row> texts(const std::string &query) const
    try {
        SQLite::Statement statement(m_database, query);
        std::vector<Row> rows;
        while (statement.executeStep()) {
            Row &row = rows.emplace_back();
            for (int i = 0; i < statement.getColumnCount(); ++i)
                row.push_back(statement.isColumnNull(i) ? "-" : statement.getColumn(i).getString());
        }
        return rows;
    } catch (const SQLite::Exception &error) {
        throw std::runtime_error(std::string(error.what()) + '\n' + query);
    }
    /// The same, columns joined by "|".
    std::vector<std::string> lines(const std::string &query) const
    {
        std::vector<std::string> lines;
        for (const Row &row : texts(query)) {
            std::string &line = lines.emplace_back();
            for (size_t i = 0; i < row.size(); ++i)
                line += (i ? "|" : "") + row[i];
        }
        return lines;
    }
    /// All rows of a query that gives integers alone; NULL throws.
    std::vector<std::vector<int64_t>> rows(const std::string &query) const
    {
        std::vector<std::vector<int64_t>> rows;
        for (const Row &texts : texts(query)) {
            std::vector<int64_t> &row = rows.emplace_back();
            for (const std::string &text : texts)
                row.push_back(integer(text, query));
        }
        return rows;
    }
    /// The one integer that a query gives.
    int64_t value(const std::string &query) const
    {
        const auto all = rows(query);
        if (all.size() != 1 || all[0].size() != 1)
            throw std::runtime_error(std::to_string(all.size()) + " rows, not one value\n" + query);
        return all[0][0];
    }
    /// run.json's origin, which the views' times count from.
    int64_t originNs() const { return value("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'origin_ns'"); }

private:
    static std::filesystem::path ofRank(const std::filesystem::path &run, int rank)
    {
        return run / "attempt-1" / ("rank-" + std::to_string(rank) + ".sqlite");
    }
    static int64_t integer(const std::string &text, const std::string &query)
    {
        int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
            throw std::runtime_error("“" + text + "” is no integer\n" + query);
        return value;
    }

    SQLite::Database m_database;
};

} // namespace shardscope::test
