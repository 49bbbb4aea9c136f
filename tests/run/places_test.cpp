// SPDX-License-Identifier: Apache-2.0
#include "core/run/places.h"
#include "tests/support/temporary_folder.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::run;
using shardscope::test::TemporaryFolder;

static mode_t modeOf(const fs::path &path)
{
    struct stat info
    {
    };
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

TEST(Places, followTheVariablesWhereTheyAreAbsolute)
{
    ::setenv("HOME", "/home/x", 1);
    ::setenv("XDG_DATA_HOME", "/data", 1);
    ::setenv("XDG_CACHE_HOME", "relative", 1);
    ::unsetenv("XDG_CONFIG_HOME");
    EXPECT_EQ(defaultRunsDirectory(), "/data/shardscope/runs");
    EXPECT_EQ(cacheDirectory(), "/home/x/.cache/shardscope");
    EXPECT_EQ(configDirectory(), "/home/x/.config/shardscope");
    ::unsetenv("XDG_DATA_HOME");
    EXPECT_EQ(defaultRunsDirectory(), "/home/x/.local/share/shardscope/runs");
}

TEST(Places, makeThePrivateRuntimeFolder)
{
    const TemporaryFolder temporary;
    ::setenv("XDG_RUNTIME_DIR", temporary.path().c_str(), 1);
    EXPECT_EQ(runtimeDirectory().value(), temporary.path() / "shardscope");
    EXPECT_EQ(modeOf(temporary.path() / "shardscope"), 0700u);
    ::unsetenv("XDG_RUNTIME_DIR");
    EXPECT_EQ(runtimeDirectory().value(), fmt::format("/tmp/shardscope-{}", ::getuid()));
    ::setenv("XDG_RUNTIME_DIR", "/proc/nowhere", 1);
    EXPECT_EQ(runtimeDirectory().value(), fmt::format("/tmp/shardscope-{}", ::getuid()));
    ::unsetenv("XDG_RUNTIME_DIR");
}

TEST(Places, refuseALinkInPlaceOfAPrivateFolder)
{
    const TemporaryFolder temporary;
    fs::create_directory(temporary.path() / "elsewhere");
    fs::create_directory_symlink(temporary.path() / "elsewhere", temporary.path() / "link");
    EXPECT_FALSE(makePrivateFolder(temporary.path() / "link"));
    ::chmod((temporary.path() / "elsewhere").c_str(), 0755);
    EXPECT_TRUE(makePrivateFolder(temporary.path() / "elsewhere"));
    EXPECT_EQ(modeOf(temporary.path() / "elsewhere"), 0700u);
}
