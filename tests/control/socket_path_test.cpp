// SPDX-License-Identifier: Apache-2.0
#include "core/control/socket_path.h"
#include "tests/support/temporary_folder.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using shardscope::control::controlSocketPath;
using shardscope::test::TemporaryFolder;

TEST(ControlSocketPath, isTheSameForTheSameFolderHoweverItIsNamed)
{
    const TemporaryFolder temporary;
    ::setenv("XDG_RUNTIME_DIR", temporary.path().c_str(), 1);
    fs::create_directories(temporary.path() / "run");
    fs::create_directory_symlink(temporary.path() / "run", temporary.path() / "link");
    const auto path = controlSocketPath(run::RunFolder(temporary.path() / "run"));
    ASSERT_TRUE(path);
    EXPECT_EQ(path->parent_path(), temporary.path() / "shardscope");
    EXPECT_EQ(controlSocketPath(run::RunFolder(temporary.path() / "link")).value(), *path);
    EXPECT_NE(controlSocketPath(run::RunFolder(temporary.path() / "other")).value(), *path);
    ::unsetenv("XDG_RUNTIME_DIR");
}

TEST(ControlSocketPath, staysBelowTheLimitOfSocketPaths)
{
    const TemporaryFolder temporary;
    const fs::path deep = temporary.path() / std::string(100, 'x');
    fs::create_directories(deep);
    ::setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
    const auto path = controlSocketPath(run::RunFolder(deep / std::string(200, 'y')));
    ASSERT_TRUE(path);
    EXPECT_LT(path->native().size(), 108u);
    EXPECT_EQ(path->parent_path(), fmt::format("/tmp/shardscope-{}", ::getuid()));
    ::unsetenv("XDG_RUNTIME_DIR");
}
