// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/flat_layout.h"

#include <algorithm>
#include <fnmatch.h>

namespace shardscope::shapes {

static int64_t alignUp(int64_t value, int64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

int64_t BucketLayout::elements() const
{
    int64_t sum = 0;
    for (const ParameterPlace &place : parameters)
        sum += place.shape.elements();
    return sum;
}

const ParameterPlace *BucketLayout::find(std::string_view parameterName) const
{
    for (const ParameterPlace &place : parameters) {
        if (place.shape.name == parameterName)
            return &place;
    }
    return nullptr;
}

BucketLayout layOut(const UnitShape &unit, int64_t worldSize)
{
    BucketLayout layout;
    layout.name = unit.name;
    layout.worldSize = worldSize;
    int64_t offset = 0;
    for (const ParameterShape &shape : unit.parameters) {
        layout.parameters.push_back({shape, offset});
        offset = alignUp(offset + shape.elements(), kAlignElements);
    }
    layout.sliceElements = alignUp((offset + worldSize - 1) / worldSize, kAlignElements);
    layout.paddedElements = layout.sliceElements * worldSize;
    return layout;
}

BucketLayout layOut(const UnitPlan &unit, const BucketPlan &bucket, int64_t worldSize)
{
    UnitShape shape{bucket.name, unit.shape.kind, {}};
    for (const size_t parameter : bucket.parameters)
        shape.parameters.push_back(unit.shape.parameters[parameter]);
    return layOut(shape, worldSize);
}

ElementRange heldSlices(int64_t rank, int64_t ranks, int64_t shardGroup)
{
    const int64_t slices = ranks / shardGroup;
    const int64_t first = rank % shardGroup * slices;
    return {first, first + slices};
}

ElementRange intersect(const ElementRange &of, const ElementRange &within)
{
    const int64_t begin = std::max(of.begin, within.begin);
    return {begin, std::max(begin, std::min(of.end, within.end))};
}

bool isExempt(const ParameterShape &parameter, const std::vector<std::string> &noDecay)
{
    const auto matches = [&](const std::string &rule) {
        return rule == toText(parameter.kind) || fnmatch(rule.c_str(), parameter.name.c_str(), 0) == 0;
    };
    return std::ranges::any_of(noDecay, matches);
}

std::vector<DecayRange> decayRanges(const BucketLayout &layout, const std::vector<std::string> &noDecay)
{
    std::vector<DecayRange> ranges;
    for (const ParameterPlace &place : layout.parameters) {
        const bool decays = !isExempt(place.shape, noDecay);
        if (!ranges.empty())
            ranges.back().range.end = place.offset;
        if (ranges.empty() || ranges.back().decays != decays)
            ranges.push_back({{place.offset, place.offset}, decays});
    }
    if (!ranges.empty())
        ranges.back().range.end = layout.paddedElements;
    return ranges;
}

} // namespace shardscope::shapes
