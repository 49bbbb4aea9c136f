// SPDX-License-Identifier: Apache-2.0
// A run of two ranks on two GPUs as our own program recorded it (README.md beside this file), and what plain SQL says
// of it. Library target: shardscope_test_two_gpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct sqlite3;

namespace shardscope::test {

/// Copies the run folder to `run`, whose parent exists: whatever opens it may write beside it. Throws
/// std::runtime_error where it was not unpacked: SHARDSCOPE_BIN then does not name a built tree's bin folder.
void copyTwoGpusRecording(const std::filesystem::path &run);

/// One rank's database by SQLite alone, apart from the code under test; the other rank's is attached as `other`. Times
/// are epoch nanoseconds. Throws std::runtime_error with SQLite's message.
class PlainSql
{
public:
    PlainSql(const std::filesystem::path &run, int rank);
    ~PlainSql();
    PlainSql(const PlainSql &) = delete;
    PlainSql &operator=(const PlainSql &) = delete;

    using Row = std::vector<std::string>;
    /// All rows as texts; NULL is "NULL".
    std::vector<Row> texts(const std::string &query) const;
    /// All rows of a query that gives integers alone; NULL throws.
    std::vector<std::vector<int64_t>> rows(const std::string &query) const;
    /// The one integer that a query gives.
    int64_t value(const std::string &query) const;
    /// run.json's origin, which the views' times count from.
    int64_t originNs() const { return value("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'origin_ns'"); }

private:
    sqlite3 *m_database = nullptr;
};

} // namespace shardscope::test
