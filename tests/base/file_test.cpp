// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include "tests/base/failing_close.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace shardscope;

TEST(WriteFileAtomically, replacesTheOldTextAndLeavesNothingBeside)
{
    const auto folder = std::filesystem::path(testing::TempDir()) / "write \"atomically\" ü";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(writeFileAtomically(folder / "a.json", "one"));
    ASSERT_TRUE(writeFileAtomically(folder / "a.json", "two"));
    EXPECT_EQ(readTextFile(folder / "a.json").value(), "two");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(WriteFileAtomically, namesThePathAndTheReason)
{
    const auto written = writeFileAtomically("/nonexistent folder/a.json", "x");
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().text.find("/nonexistent folder/a.json"), std::string::npos);
    EXPECT_NE(written.error().text.find("No such file"), std::string::npos);
}

TEST(WriteFileAtomically, keepsTheOldTextWhereClosingFindsNoRoom)
{
    const test::TemporaryFolder folder;
    const auto path = folder.path() / "state.json";
    ASSERT_TRUE(writeFileAtomically(path, "old"));
    {
        const test::FailingClose full;
        const auto written = writeFileAtomically(path, "new", Durability::Passing);
        ASSERT_FALSE(written);
        EXPECT_NE(written.error().text.find("No space left on device"), std::string::npos) << written.error().text;
    }
    EXPECT_EQ(readTextFile(path).value(), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "nothing is left beside";
}

TEST(ReadTextFile, readsAllOfAFile)
{
    const test::TemporaryFolder folder;
    const std::string text(100'000, 'x');
    ASSERT_TRUE(writeFileAtomically(folder.path() / "a", text + "\0 and on"));
    EXPECT_EQ(readTextFile(folder.path() / "a").value(), text + "\0 and on");
    EXPECT_EQ(readTextFile("/proc/self/comm").value(), "test_base\n") << "whose size is said to be 0";
}

TEST(ReadTextFile, saysWhyAReadFailed)
{
    // Both can be opened: it is the reading that fails.
    for (const auto &[path, why] :
         {std::pair("/", "Is a directory"), std::pair("/proc/self/mem", "Input/output error")}) {
        const auto read = readTextFile(path);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().text, fmt::format("Can't read {}: {}.", path, why));
    }
    EXPECT_NE(readTextFile("/nonexistent/a").error().text.find("No such file"), std::string::npos);
}

TEST(AbsolutePath, isNormalAndSaysWhereTheCurrentFolderIsGone)
{
    EXPECT_EQ(absolutePath("/a/../b/./c").value(), "/b/c");
    EXPECT_EQ(absolutePath("x").value(), std::filesystem::current_path() / "x");
    const int before = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(before, 0);
    {
        const test::TemporaryFolder folder;
        ASSERT_EQ(::chdir(folder.path().c_str()), 0);
    }
    const auto relative = absolutePath("data.txt");
    const auto whole = absolutePath("/data.txt");
    EXPECT_EQ(::fchdir(before), 0);
    ::close(before);
    ASSERT_FALSE(relative);
    EXPECT_NE(relative.error().text.find("data.txt"), std::string::npos);
    EXPECT_NE(relative.error().text.find("Change to a folder that exists"), std::string::npos);
    EXPECT_EQ(whole.value(), "/data.txt");
}

TEST(EntriesOf, areAllOfAFolderOrNone)
{
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() / "b");
    std::ofstream(folder.path() / "a");
    auto entries = entriesOf(folder.path());
    std::ranges::sort(entries);
    EXPECT_EQ(entries, (std::vector{folder.path() / "a", folder.path() / "b"}));
    EXPECT_TRUE(entriesOf(folder.path() / "a").empty());
    EXPECT_TRUE(entriesOf(folder.path() / "none").empty());
}
