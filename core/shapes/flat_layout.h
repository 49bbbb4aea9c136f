// SPDX-License-Identifier: Apache-2.0
// Where each parameter lies in a flat bucket and which slice of the bucket each rank owns. Arithmetic alone: no
// LibTorch. Order and padding depend on the parameters and the world size, never on the strategy or the dtype.
#pragma once

#include "core/shapes/model_shape.h"
#include "core/shapes/unit_plan.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::shapes {

/// Parameters and slices start at multiples of this many elements: 256 bytes in bf16, 512 in fp32. A bf16 weight that
/// starts 2 bytes off is 8.5 times slower in a product.
inline constexpr int64_t kAlignElements = 128;

/// A half-open range of elements of a bucket.
struct ElementRange
{
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
    bool operator==(const ElementRange &) const = default;
};

/// One parameter's place in its bucket.
struct ParameterPlace
{
    ParameterShape shape;
    int64_t offset = 0; ///< elements from the bucket's start
    ElementRange range() const { return {offset, offset + shape.elements()}; }
};

/// A flat bucket: parameters one after the other, each aligned, the end padded so that all ranks' slices are equal.
struct BucketLayout
{
    std::string name; ///< the unit's: "block.3"
    std::vector<ParameterPlace> parameters;
    int64_t worldSize = 1;
    int64_t paddedElements = 0; ///< worldSize × sliceElements
    int64_t sliceElements = 0;  ///< a multiple of kAlignElements

    int64_t elements() const; ///< of the parameters, padding not counted
    int64_t paddingElements() const { return paddedElements - elements(); }
    ElementRange sliceOf(int64_t rank) const { return {rank * sliceElements, (rank + 1) * sliceElements}; }
    /// The place of the parameter of that full name; nullptr where there is none.
    const ParameterPlace *find(std::string_view parameterName) const;
};

BucketLayout layOut(const UnitShape &unit, int64_t worldSize);
/// Of one bucket of a unit, whose parameters lie in it in the bucket's order.
BucketLayout layOut(const UnitPlan &unit, const BucketPlan &bucket, int64_t worldSize);

/// The slices that a rank holds, counted from 0. A bucket has as many equal slices as there are ranks, whatever the
/// strategy: a group of `shardGroup` neighbours has ranks ÷ shardGroup slices for each of its ranks.
ElementRange heldSlices(int64_t rank, int64_t ranks, int64_t shardGroup);

/// The part of `of` that lies in `within`; empty (begin == end) where they do not meet.
ElementRange intersect(const ElementRange &of, const ElementRange &within);

/// A range of a bucket that has one weight decay.
struct DecayRange
{
    ElementRange range;
    bool decays = true;
};

/// True where a rule (a parameter kind such as "norm", or a glob over names) exempts the parameter from weight decay.
bool isExempt(const ParameterShape &parameter, const std::vector<std::string> &noDecay);

/// The ranges of the bucket in order; neighbours with the same decay are one range. Padding belongs to what is before
/// it.
std::vector<DecayRange> decayRanges(const BucketLayout &layout, const std::vector<std::string> &noDecay);

} // namespace shardscope::shapes
