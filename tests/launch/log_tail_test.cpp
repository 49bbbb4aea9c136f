// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/launch/log_tail.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

using namespace shardscope;
using shardscope::launch::logTail;

TEST(LogTail, hasTheLastLines)
{
    const test::TemporaryFolder temporary;
    const auto log = temporary.path() / "rank-0.log";
    EXPECT_EQ(logTail(log, 3), "") << "no file";
    const auto tailOf = [&](const std::string &text, int lines) {
        EXPECT_TRUE(writeFileAtomically(log, text));
        return logTail(log, lines);
    };
    EXPECT_EQ(tailOf("", 3), "");
    EXPECT_EQ(tailOf("\n\n", 3), "");
    EXPECT_EQ(tailOf("one", 3), "one");
    EXPECT_EQ(tailOf("one\ntwo\nthree\nfour\n\n", 3), "two\nthree\nfour");
    EXPECT_EQ(tailOf("one\ntwo\n", 1), "two");
    EXPECT_EQ(tailOf("\n\n\nlast\n", 9), "\n\n\nlast");
}

TEST(LogTail, readsLittleOfALongFile)
{
    const test::TemporaryFolder temporary;
    const auto log = temporary.path() / "rank-0.log";
    std::string text(100'000, 'x');
    ASSERT_TRUE(writeFileAtomically(log, text + "\nlast"));
    EXPECT_EQ(logTail(log, 5), "last");
    ASSERT_TRUE(writeFileAtomically(log, text));
    EXPECT_EQ(logTail(log, 5).size(), 8192u);
}
