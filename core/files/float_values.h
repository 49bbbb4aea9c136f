// SPDX-License-Identifier: Apache-2.0
// Stored numbers as fp32 and back, without LibTorch.
#pragma once

#include "core/files/safetensors.h"

#include <span>

namespace shardscope::files {

/// The type of "fp32", "bf16", "fp16"; nothing for what is none.
std::optional<TensorType> tensorTypeOf(std::string_view dtype);

/// Exact. stored: F32, BF16 or F16, as many as values.
void toFloats(TensorType type, std::span<const std::byte> stored, std::span<float> values);

/// type: F32, or BF16, which rounds to nearest, ties to even, as LibTorch does; NaN stays NaN.
void fromFloats(TensorType type, std::span<const float> values, std::span<std::byte> stored);

} // namespace shardscope::files
