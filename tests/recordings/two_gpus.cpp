// SPDX-License-Identifier: Apache-2.0
#include "two_gpus.h"

#include <cstdlib>
#include <fmt/format.h>
#include <sqlite3.h>
#include <stdexcept>

namespace shardscope::test {

void copyTwoGpusRecording(const std::filesystem::path &run)
{
    const char *bin = std::getenv("SHARDSCOPE_BIN");
    const std::filesystem::path unpacked =
        std::filesystem::path(bin ? bin : "bin") / ".." / "tests" / "recordings" / "two_gpus";
    if (!std::filesystem::exists(unpacked / "run.json"))
        throw std::runtime_error(fmt::format("{} is not unpacked; SHARDSCOPE_BIN is the bin folder of a build",
                                             unpacked.lexically_normal().string()));
    std::filesystem::copy(unpacked, run, std::filesystem::copy_options::recursive);
}

PlainSql::PlainSql(const std::filesystem::path &run, int rank)
{
    const auto file = [&run](int of) { return (run / "attempt-1" / fmt::format("rank-{}.sqlite", of)).string(); };
    if (sqlite3_open_v2(file(rank).c_str(), &m_database, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
        throw std::runtime_error(fmt::format("{}: {}", file(rank), sqlite3_errmsg(m_database)));
    char *attach = sqlite3_mprintf("ATTACH %Q AS other", file(1 - rank).c_str());
    texts(attach);
    sqlite3_free(attach);
}

PlainSql::~PlainSql()
{
    sqlite3_close(m_database);
}

std::vector<PlainSql::Row> PlainSql::texts(const std::string &query) const
{
    sqlite3_stmt *statement = nullptr;
    if (sqlite3_prepare_v2(m_database, query.c_str(), -1, &statement, nullptr) != SQLITE_OK)
        throw std::runtime_error(fmt::format("{}\n{}", sqlite3_errmsg(m_database), query));
    std::vector<Row> rows;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        Row &row = rows.emplace_back();
        for (int i = 0; i < sqlite3_column_count(statement); ++i) {
            const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(statement, i));
            row.emplace_back(text ? text : "NULL");
        }
    }
    if (sqlite3_finalize(statement) != SQLITE_OK)
        throw std::runtime_error(fmt::format("{}\n{}", sqlite3_errmsg(m_database), query));
    return rows;
}

std::vector<std::vector<int64_t>> PlainSql::rows(const std::string &query) const
{
    std::vector<std::vector<int64_t>> rows;
    for (const Row &texts : texts(query)) {
        std::vector<int64_t> &row = rows.emplace_back();
        for (const std::string &text : texts) {
            size_t end = 0;
            row.push_back(std::stoll(text, &end));
            if (end != text.size())
                throw std::runtime_error(fmt::format("{} is no integer\n{}", text, query));
        }
    }
    return rows;
}

int64_t PlainSql::value(const std::string &query) const
{
    const auto all = rows(query);
    if (all.size() != 1 || all[0].size() != 1)
        throw std::runtime_error(fmt::format("{} rows, not one value\n{}", all.size(), query));
    return all[0][0];
}

} // namespace shardscope::test
