// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"

#include <c10/core/ScalarType.h>
#include <string_view>

namespace shardscope::engine {

at::ScalarType scalarTypeOf(Precision precision);
/// As recordings and checkpoints have it: "fp32", "bf16", "fp16", "fp64", "int64"; LibTorch's name of any other.
std::string_view dtypeName(at::ScalarType type);

} // namespace shardscope::engine
