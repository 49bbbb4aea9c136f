// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/recording.h"

#include "recording_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace shardscope::store {
namespace {

using testing::HasSubstr;

class SqlTest : public testing::Test
{
protected:
    void SetUp() override { write({}); }
    void write(const test::FixtureOptions &options)
    {
        const auto written = test::writeFixtureRecording(m_folder.path() / "run", options);
        ASSERT_TRUE(written) << written.error().text;
        auto opened = Recording::open(m_folder.path() / "run", {.cacheFolder = m_folder.path() / "cache"});
        ASSERT_TRUE(opened) << opened.error().text;
        m_recording.emplace(std::move(*opened));
    }
    std::string errorOf(const std::string &query)
    {
        const auto result = m_recording->sql(query);
        return result ? "no error" : result.error().text;
    }
    int64_t integerOf(const std::string &query)
    {
        const auto result = m_recording->sql(query);
        if (!result)
            throw std::runtime_error(result.error().text);
        return std::get<int64_t>(result->rows.at(0).at(0));
    }

    test::TemporaryFolder m_folder;
    std::optional<Recording> m_recording;
};

TEST_F(SqlTest, SeesAllRanksAsOneDatabase)
{
    EXPECT_EQ(integerOf("SELECT count(*) FROM process WHERE rank IS NOT NULL"), 2);
    EXPECT_EQ(integerOf("SELECT count(*) FROM step"), 8);
    // Joins stay within a rank: every span of rank 1 has a lane, a name, a step and a unit of rank 1.
    EXPECT_EQ(integerOf("SELECT count(*) FROM span s JOIN lane l USING (lane_id) JOIN process p USING (process_id) "
                        "JOIN step t USING (step_id) WHERE p.rank = 1 AND t.process_id <> p.process_id"),
              0);
    EXPECT_EQ(integerOf("SELECT count(*) FROM span s JOIN name n USING (name_id) JOIN lane l USING (lane_id) JOIN "
                        "process p USING (process_id) WHERE n.text = 'backward' AND l.name = 'compute' AND p.rank = 1"),
              4 * 4);
    EXPECT_EQ(integerOf("SELECT count(*) FROM span s JOIN collective c USING (collective_id) JOIN communicator m USING "
                        "(communicator_id) JOIN lane l USING (lane_id) WHERE m.process_id <> l.process_id"),
              0);
    EXPECT_EQ(integerOf("SELECT count(*) FROM memory_peak k JOIN memory m USING (memory_id) WHERE k.process_id <> "
                        "m.process_id"),
              0);
    EXPECT_EQ(integerOf("SELECT count(DISTINCT span_id) - count(*) FROM span"), 0);
}

TEST_F(SqlTest, TheMergeIsRenewedWhenSomethingWasWritten)
{
    EXPECT_EQ(integerOf("SELECT count(*) FROM process"), 3);
    test::FixtureOptions second;
    second.attempt = 2;
    second.firstStep = 4;
    write(second);
    EXPECT_EQ(integerOf("SELECT count(*) FROM process"), 6);
    int files = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(m_folder.path() / "cache" / "merged"))
        ++files;
    EXPECT_EQ(files, 1); // the older one is gone
}

TEST_F(SqlTest, DeathsOfRanksStandInProcess)
{
    test::FixtureOptions options;
    options.attempt = 2;
    options.killedRank = 1;
    write(options);
    EXPECT_EQ(integerOf("SELECT signal FROM process WHERE attempt = 2 AND rank = 1"), 9);
    EXPECT_EQ(integerOf("SELECT count(*) FROM process WHERE signal IS NOT NULL"), 1);
}

TEST_F(SqlTest, WritingIsRefused)
{
    EXPECT_THAT(errorOf("DELETE FROM span"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("DROP TABLE span"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("PRAGMA user_version = 3"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("PRAGMA journal_mode = WAL"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("ATTACH '/tmp/x.sqlite' AS x"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("CREATE TEMP TABLE t (x)"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("BEGIN"), HasSubstr("Only reading statements"));
    EXPECT_THAT(errorOf("VACUUM INTO '/tmp/x.sqlite'"), HasSubstr("Only reading statements"));
    EXPECT_EQ(integerOf("SELECT count(*) FROM step"), 8);
}

TEST_F(SqlTest, ErrorsSayWhatIsWrong)
{
    EXPECT_THAT(errorOf("SELECT * FROM spans"), HasSubstr("no such table: spans"));
    EXPECT_THAT(errorOf("SELECT * FROM spans"), HasSubstr("Did you mean span?"));
    EXPECT_THAT(errorOf("SELECT foo FROM span"), HasSubstr("no such column: foo"));
    EXPECT_THAT(errorOf("SELEC 1"), HasSubstr("syntax error"));
    EXPECT_THAT(errorOf("SELECT 1; SELECT 2"), HasSubstr("One statement at a time"));
    EXPECT_THAT(errorOf("  "), HasSubstr("no SQL statement"));
    EXPECT_THAT(errorOf("-- nothing"), HasSubstr("no SQL statement"));
}

TEST_F(SqlTest, ReadingInAllItsForms)
{
    EXPECT_EQ(
        integerOf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT max(i) FROM n;"),
        5);
    EXPECT_EQ(integerOf("PRAGMA user_version"), 1);
    const auto columns = m_recording->sql("PRAGMA table_info(flush)");
    ASSERT_TRUE(columns) << columns.error().text;
    EXPECT_EQ(columns->rows.size(), 7u);
    EXPECT_TRUE(m_recording->sql("EXPLAIN QUERY PLAN SELECT * FROM span"));
}

TEST_F(SqlTest, RowsAsTextAndJson)
{
    const auto result =
        m_recording->sql("SELECT 7 AS id, 'caf\xC3\xA9' AS text, 1.5 AS half, NULL AS none, x'00ff' AS raw "
                         "UNION ALL SELECT 12345, 'b\nb', 0.1, NULL, x'' ORDER BY id");
    ASSERT_TRUE(result) << result.error().text;
    EXPECT_EQ(result->toText(), "   id  text  half  none  raw\n"
                                "    7  caf\xC3\xA9   1.5  NULL  0x00ff\n"
                                "12345  b b    0.1  NULL  0x\n");
    EXPECT_EQ(result->toJson(), R"({"columns":["id","text","half","none","raw"],"rows":[[7,"caf)"
                                "\xC3\xA9"
                                R"(",1.5,null,"00ff"],[12345,"b\nb",0.1,null,""]],"truncated":false})");
}

TEST_F(SqlTest, TextThatIsNoUtf8IsStillJson)
{
    const auto result = m_recording->sql("SELECT CAST(x'41ff42' AS TEXT) AS t");
    ASSERT_TRUE(result);
    const auto json = nlohmann::json::parse(result->toJson());
    EXPECT_EQ(json["rows"][0][0].get<std::string>(), "A\xEF\xBF\xBD"
                                                     "B");
}

TEST_F(SqlTest, TooManyRowsAreCutOffAndSaidSo)
{
    const auto result = m_recording->sql("SELECT span_id FROM span", 3);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->rows.size(), 3u);
    EXPECT_TRUE(result->truncated);
    EXPECT_THAT(result->toText(), HasSubstr("only the first 3 rows"));
}

TEST_F(SqlTest, AnUnwritableCacheIsNamed)
{
    std::ofstream(m_folder.path() / "blocked") << "a file where a folder should be";
    auto recording = Recording::open(m_folder.path() / "run", {.cacheFolder = m_folder.path() / "blocked"});
    ASSERT_TRUE(recording);
    const auto result = recording->sql("SELECT 1");
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().text, HasSubstr("blocked/merged"));
}

} // namespace
} // namespace shardscope::store
