// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/model_shape.h"

#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::shapes;

TEST(Presets, haveTheParametersOfThePeer)
{
    // PyTorch's count of the same decoder: sum(p.numel() for p in model.parameters()).
    EXPECT_EQ(parameterCount(*presetShape("tiny")), 984'192);
    EXPECT_EQ(parameterCount(*presetShape("1b3")), 1'364'297'728);
    EXPECT_NEAR(static_cast<double>(parameterCount(*presetShape("124m"))), 162.2e6, 0.1e6);
}

TEST(Presets, anUnknownNameIsRefusedWithTheNamesThereAre)
{
    const auto shape = presetShape("13b");
    ASSERT_FALSE(shape);
    EXPECT_NE(shape.error().text.find("tiny, 15m"), std::string::npos);
}

TEST(Units, aTiedHeadHasItsNormOnly)
{
    ModelShape shape = *presetShape("tiny");
    const int64_t untied = parameterCount(shape);
    shape.tiedEmbeddings = true;
    const auto units = unitsOf(shape);
    EXPECT_EQ(units.size(), 6u);
    EXPECT_EQ(units.back().parameters.size(), 1u);
    EXPECT_EQ(untied - parameterCount(shape), 512 * 128);
}
