// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <gtest/gtest.h>

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
