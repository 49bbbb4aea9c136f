// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/run/database_place.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::run;
using testing::HasSubstr;

TEST(NetworkFileSystem, isKnownByItsMagicNumber)
{
    EXPECT_EQ(networkFileSystem(0x6969), "NFS");
    EXPECT_EQ(networkFileSystem(0x517B), "SMB");
    EXPECT_EQ(networkFileSystem(0xFF534D42), "SMB");
    EXPECT_EQ(networkFileSystem(static_cast<int32_t>(0xFE534D42)), "SMB") << "where the type is signed";
    EXPECT_EQ(networkFileSystem(0x65735546), "FUSE");
    EXPECT_EQ(networkFileSystem(0x01021997), "9p");
    EXPECT_EQ(networkFileSystem(0xEF53), std::nullopt) << "ext4";
    EXPECT_EQ(networkFileSystem(fileSystemOf("/proc").value()), std::nullopt);
    EXPECT_FALSE(fileSystemOf("/no such folder"));
}

class DatabasePlaceTest : public testing::Test
{
protected:
    DatabasePlaceTest()
    {
        fs::create_directories(run);
        fs::create_directories(temporary.path() / "local");
    }
    /// As if the run, and whatever else is below "network", were on NFS.
    std::optional<int64_t> fileSystem(const fs::path &folder) const
    {
        return folder.string().starts_with((temporary.path() / "network").string()) ? 0x6969 : 0xEF53;
    }
    DatabasePlace choose(const std::vector<fs::path> &localFolders) const
    {
        return DatabasePlace::choose(
            home, [this](const fs::path &folder) { return fileSystem(folder); }, localFolders);
    }
    static void write(const fs::path &path, const std::string &text) { ASSERT_TRUE(writeFileAtomically(path, text)); }
    test::TemporaryFolder temporary;
    fs::path run = temporary.path() / "network" / "a run" / "attempt-1";
    fs::path home = run / "rank-0.sqlite";
    fs::path local = temporary.path() / "local" / "recordings";
};

TEST_F(DatabasePlaceTest, isAtHomeOnALocalFileSystem)
{
    DatabasePlace place = DatabasePlace::choose(home, [](const fs::path &) { return 0xEF53; }, {local});
    EXPECT_EQ(place.path(), home);
    EXPECT_EQ(place.note(), "");
    EXPECT_TRUE(place.moveHome());
    EXPECT_FALSE(fs::exists(local));
}

TEST_F(DatabasePlaceTest, isLocalUntilTheEndOnANetworkFileSystem)
{
    DatabasePlace place = choose({temporary.path() / "network" / "cache" / "recordings", local});
    EXPECT_EQ(place.path().parent_path().parent_path(), local) << "the cache is on the network too";
    EXPECT_THAT(place.note(), HasSubstr("network file system (NFS): rank-0.sqlite is written to " + local.string()));
    write(place.path(), "rows");
    EXPECT_EQ(readTextFile(home).value(), "rows") << "viewers on this machine find it while it grows";
    ASSERT_TRUE(place.moveHome());
    EXPECT_FALSE(fs::is_symlink(home));
    EXPECT_EQ(readTextFile(home).value(), "rows");
    EXPECT_EQ(place.path(), home);
    EXPECT_TRUE(fs::is_empty(local));
    EXPECT_EQ(std::distance(fs::directory_iterator(run), {}), 1) << "no partial copy is left";
}

TEST_F(DatabasePlaceTest, isKeptWhereItCanNotBeMoved)
{
    DatabasePlace place = choose({local});
    write(place.path(), "rows");
    fs::remove_all(run); // the server is gone
    const auto moved = place.moveHome();
    ASSERT_FALSE(moved);
    EXPECT_THAT(moved.error().text, HasSubstr("It is kept in " + place.path().string()));
    EXPECT_EQ(readTextFile(place.path()).value(), "rows");
}

TEST_F(DatabasePlaceTest, staysAtHomeWithAWarningWhereNothingIsLocal)
{
    const DatabasePlace place = choose({temporary.path() / "network" / "cache" / "recordings"});
    EXPECT_EQ(place.path(), home);
    EXPECT_THAT(place.note(), HasSubstr("Set TMPDIR"));
}
