// SPDX-License-Identifier: Apache-2.0
#include "core/files/float_values.h"

#include "core/base/bf16.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace shardscope::files {

std::optional<TensorType> tensorTypeOf(std::string_view dtype)
{
    if (dtype == "fp32")
        return TensorType::F32;
    if (dtype == "bf16")
        return TensorType::Bf16;
    if (dtype == "fp16")
        return TensorType::F16;
    return std::nullopt;
}

/// IEEE 754 binary16: 1 bit of sign, 5 of exponent (bias 15), 10 of mantissa.
static float floatOfHalf(uint16_t half)
{
    const uint32_t sign = (half & 0x8000U) << 16U;
    const uint32_t exponent = (half >> 10U) & 0x1fU;
    const uint32_t mantissa = half & 0x3ffU;
    if (exponent == 0) {
        const float value = static_cast<float>(mantissa) * 0x1p-24F;
        return sign ? -value : value;
    }
    const uint32_t wide = exponent == 0x1fU ? 0xffU : exponent + 127U - 15U;
    return std::bit_cast<float>(sign | (wide << 23U) | (mantissa << 13U));
}

void toFloats(TensorType type, std::span<const std::byte> stored, std::span<float> values)
{
    assert(stored.size() == values.size() * static_cast<size_t>(elementBytes(type)));
    if (type == TensorType::F32) {
        std::memcpy(values.data(), stored.data(), stored.size());
        return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, stored.data() + 2 * i, sizeof bits);
        values[i] = type == TensorType::Bf16 ? floatOfBf16(bits) : floatOfHalf(bits);
    }
}

void fromFloats(TensorType type, std::span<const float> values, std::span<std::byte> stored)
{
    assert(stored.size() == values.size() * static_cast<size_t>(elementBytes(type)));
    if (type == TensorType::F32) {
        std::memcpy(stored.data(), values.data(), stored.size());
        return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t bits = bf16BitsOf(values[i]);
        std::memcpy(stored.data() + 2 * i, &bits, sizeof bits);
    }
}

} // namespace shardscope::files
