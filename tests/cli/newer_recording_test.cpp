// SPDX-License-Identifier: Apache-2.0
// A recording of a Shardscope that is newer than this one.
#include "profiler/store/rows.h"
#include "tests/cli/fake_rank_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

using namespace shardscope;
using testing::AllOf;
using testing::HasSubstr;

TEST(NewerRecording, isRefusedWithBothVersions)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 2);
    ASSERT_EQ(cli.run(cli.runArguments("a")).exitCode, 0);
    sqlite3 *database = nullptr;
    const auto path = cli.runFolder("a").supervisorDatabase(1);
    ASSERT_EQ(::sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(database, "PRAGMA user_version = 987", nullptr, nullptr, nullptr), SQLITE_OK);
    ::sqlite3_close(database);
    const auto bothVersions =
        AllOf(HasSubstr("version 987"), HasSubstr(fmt::format("up to version {}", store::kSchemaVersion)));
    const std::vector<std::vector<std::string>> commands = {
        {"analyze", "a"}, {"sql", "a", "select 1"}, {"analyze", path.string()}, {"sql", path.string(), "select 1"}};
    for (const auto &command : commands) {
        const test::Finished finished = cli.run(command);
        EXPECT_EQ(finished.exitCode, 2) << command[0] << " " << command[1] << finished.out;
        EXPECT_THAT(finished.errors, bothVersions) << command[0] << " " << command[1];
    }
}
