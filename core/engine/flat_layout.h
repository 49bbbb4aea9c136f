// SPDX-License-Identifier: Apache-2.0
// The layout of buckets (core/shapes/flat_layout.h) by the names that the engine uses.
#pragma once

#include "core/shapes/flat_layout.h"

namespace shardscope::engine {

using shapes::BucketLayout;
using shapes::DecayRange;
using shapes::decayRanges;
using shapes::ElementRange;
using shapes::heldSlices;
using shapes::intersect;
using shapes::isExempt;
using shapes::kAlignElements;
using shapes::layOut;
using shapes::ParameterPlace;

} // namespace shardscope::engine
