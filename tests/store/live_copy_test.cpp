// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/live_copy.h"

#include "tests/support/temporary_folder.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::store {
namespace {

/// A database of many pages whose writer always raises the left half before the right one: what has the right one
/// ahead never was.
class LiveCopyTest : public testing::Test
{
protected:
    LiveCopyTest()
    {
        m_database.exec("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;"
                        "CREATE TABLE t(k INTEGER PRIMARY KEY, v INTEGER, filler TEXT);"
                        "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 2000)"
                        "INSERT INTO t SELECT k, 1, hex(zeroblob(100)) FROM n;");
        checkpoint();
    }
    void raiseLeft() { m_database.exec("UPDATE t SET v = v + 1 WHERE k <= 1000"); }
    void raiseRight() { m_database.exec("UPDATE t SET v = v + 1 WHERE k > 1000"); }
    void checkpoint() { m_database.exec("PRAGMA wal_checkpoint(FULL)"); }

    /// Copies, and does `meanwhile` once the log is copied: on the first `times` tries.
    Result<> copy(int times, const std::function<void()> &meanwhile)
    {
        return copyLiveDatabase(m_path, m_copy, [&, times](const auto &from, const auto &to) mutable {
            auto copied = copyPlainFile(from, to);
            ++m_copied;
            if (from != m_path && times-- > 0)
                meanwhile();
            return copied;
        });
    }
    /// "left right", each with what differs within the half.
    std::string halves() const
    {
        SQLite::Database copy(m_copy.string(), SQLite::OPEN_READWRITE);
        const auto half = [&copy](const char *where) {
            return copy.execAndGet(std::string("SELECT group_concat(DISTINCT v) FROM t WHERE ") + where).getString();
        };
        return half("k <= 1000") + " " + half("k > 1000");
    }

    test::TemporaryFolder m_folder;
    std::filesystem::path m_path = m_folder.path() / "live.sqlite";
    std::filesystem::path m_copy = m_folder.path() / "copy.sqlite";
    SQLite::Database m_database{m_path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
    int m_copied = 0; ///< files
};

TEST_F(LiveCopyTest, ACheckpointBetweenTheTwoCopiesMeansAnotherTry)
{
    raiseLeft();
    ASSERT_TRUE(copy(1, [this] {
        raiseRight();
        raiseLeft();
        raiseRight();
        checkpoint();
    }));
    EXPECT_EQ(halves(), "3 3") << "the log of the first try has the left half as it was before";
    EXPECT_EQ(m_copied, 4);
}

TEST_F(LiveCopyTest, ALogThatOnlyGrewIsFine)
{
    raiseLeft();
    ASSERT_TRUE(copy(1, [this] { raiseRight(); }));
    EXPECT_EQ(halves(), "2 1");
    EXPECT_EQ(m_copied, 2);
}

TEST_F(LiveCopyTest, ALogThatBeganAnewMeansAnotherTry)
{
    raiseLeft();
    checkpoint(); // all of the log is in the database: the next commit overwrites it from its beginning
    ASSERT_TRUE(copy(1, [this] { raiseRight(); }));
    EXPECT_EQ(halves(), "2 2");
    EXPECT_EQ(m_copied, 4);
}

TEST_F(LiveCopyTest, CheckpointsWithoutPauseAreAnError)
{
    raiseLeft();
    const auto copied = copy(1000, [this] {
        raiseRight();
        checkpoint();
        raiseLeft();
    });
    ASSERT_FALSE(copied);
    EXPECT_THAT(copied.error().text, testing::HasSubstr("it is being written to. Try again."));
}

} // namespace
} // namespace shardscope::store
