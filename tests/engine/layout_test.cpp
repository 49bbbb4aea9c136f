// SPDX-License-Identifier: Apache-2.0
#include "core/engine/flat_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::engine {

static shapes::UnitShape oddUnit()
{
    using enum shapes::ParameterKind;
    return {"block.0",
            UnitKind::Block,
            {{"block.0.norm.weight", {37}, Norm},
             {"block.0.q.weight", {64, 2}, Linear},
             {"block.0.k.weight", {13, 11}, Linear}}};
}

TEST(FlatLayout, alignsParametersAndPadsSlicesEqually)
{
    for (const int64_t worldSize : {1, 2, 3, 4, 7}) {
        const BucketLayout layout = layOut(oddUnit(), worldSize);
        EXPECT_EQ(layout.parameters[0].offset, 0);
        EXPECT_EQ(layout.parameters[1].offset, 128);
        EXPECT_EQ(layout.parameters[2].offset, 256); // 64 × 2 fills its places exactly: no gap
        EXPECT_EQ(layout.sliceElements % kAlignElements, 0);
        EXPECT_EQ(layout.sliceElements * worldSize, layout.paddedElements);
        EXPECT_GE(layout.paddedElements, 256 + 143);
        EXPECT_LT(layout.paddedElements - 512, worldSize * kAlignElements);
        EXPECT_EQ(layout.sliceOf(worldSize - 1).end, layout.paddedElements);
        EXPECT_EQ(layout.elements(), 37 + 128 + 143);
    }
}

TEST(FlatLayout, findsParametersByName)
{
    const BucketLayout layout = layOut(oddUnit(), 3);
    ASSERT_NE(layout.find("block.0.k.weight"), nullptr);
    EXPECT_EQ(layout.find("block.0.k.weight")->offset, 256);
    EXPECT_EQ(layout.find("k.weight"), nullptr);
}

TEST(FlatLayout, decayRangesCoverTheBucket)
{
    const BucketLayout layout = layOut(oddUnit(), 3);
    const auto ranges = decayRanges(layout, {"norm"});
    ASSERT_EQ(ranges.size(), 2U);
    EXPECT_EQ(ranges[0].range, (ElementRange{0, 128}));
    EXPECT_FALSE(ranges[0].decays);
    EXPECT_EQ(ranges[1].range, (ElementRange{128, layout.paddedElements}));
    EXPECT_TRUE(ranges[1].decays);
    EXPECT_EQ(decayRanges(layout, {}).size(), 1U);
    EXPECT_FALSE(decayRanges(layout, {"*.k.*", "norm"})[2].decays);
}

TEST(FlatLayout, everyKindCanBeExemptFromDecay)
{
    const ParameterKind kinds[] = {ParameterKind::Embedding, ParameterKind::Linear, ParameterKind::Norm,
                                   ParameterKind::Bias};
    shapes::UnitShape unit{"block.0", UnitKind::Block, {}};
    for (const ParameterKind kind : kinds)
        unit.parameters.push_back({fmt::format("block.0.{}.weight", unit.parameters.size()), {128}, kind});
    const BucketLayout layout = layOut(unit, 1);
    for (const ParameterKind kind : kinds) {
        for (const DecayRange &range : decayRanges(layout, {std::string(toText(kind))})) {
            for (const ParameterPlace &place : layout.parameters) {
                if (intersect(range.range, place.range()).size() > 0) {
                    EXPECT_EQ(range.decays, place.shape.kind != kind) << toText(kind) << ", " << place.shape.name;
                }
            }
        }
    }
}

TEST(FlatLayout, intersectionIsEmptyWhereRangesDoNotMeet)
{
    EXPECT_EQ(intersect({0, 10}, {5, 20}), (ElementRange{5, 10}));
    EXPECT_EQ(intersect({0, 10}, {10, 20}).size(), 0);
    EXPECT_EQ(intersect({10, 20}, {0, 5}).size(), 0);
}

} // namespace shardscope::engine
