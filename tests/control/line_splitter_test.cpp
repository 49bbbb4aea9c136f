// SPDX-License-Identifier: Apache-2.0
#include "core/control/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using shardscope::control::LineSplitter;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(LineSplitter, joinsPartsAndSplitsLines)
{
    LineSplitter lines;
    EXPECT_THAT(lines.add("{\"a\""), IsEmpty());
    EXPECT_THAT(lines.add(":1}\n\n{\"b\":2}\n{"), ElementsAre("{\"a\":1}", "{\"b\":2}"));
    EXPECT_THAT(lines.add("}\n"), ElementsAre("{}"));
    EXPECT_EQ(lines.droppedLines(), 0u);
}

TEST(LineSplitter, dropsLinesThatAreTooLongAndGoesOn)
{
    LineSplitter lines(4);
    EXPECT_THAT(lines.add("1234\n12345\n1\n"), ElementsAre("1234", "1"));
    EXPECT_EQ(lines.droppedLines(), 1u);
    EXPECT_THAT(lines.add("123"), IsEmpty());
    EXPECT_THAT(lines.add("456"), IsEmpty());
    EXPECT_THAT(lines.add("789\n12\n"), ElementsAre("12"));
    EXPECT_EQ(lines.droppedLines(), 2u);
}
