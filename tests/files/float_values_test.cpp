// SPDX-License-Identifier: Apache-2.0
#include "core/files/float_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace shardscope::files {

TEST(FloatValues, everyHalfIsWhatItsBitsSay)
{
    for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        float value = 0;
        toFloats(TensorType::F16, std::as_bytes(std::span(&half, 1)), {&value, 1});
        const int exponent = static_cast<int>((bits >> 10U) & 31U);
        const double mantissa = static_cast<double>(bits & 1023U) / 1024;
        const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
        if (exponent == 31) {
            EXPECT_EQ(std::isnan(value), mantissa != 0);
            EXPECT_EQ(std::isinf(value), mantissa == 0);
        } else {
            const double size = exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
            ASSERT_EQ(static_cast<double>(value), sign * size) << bits;
        }
        EXPECT_EQ(std::signbit(value), sign < 0) << bits;
    }
}

TEST(FloatValues, bf16IsRoundedToTheNearestEven)
{
    const auto there = [](float value) {
        uint16_t bits = 0;
        fromFloats(TensorType::Bf16, {&value, 1}, std::as_writable_bytes(std::span(&bits, 1)));
        float back = 0;
        toFloats(TensorType::Bf16, std::as_bytes(std::span(&bits, 1)), {&back, 1});
        return back;
    };
    EXPECT_EQ(there(1.0F), 1.0F);
    EXPECT_EQ(there(1.0F + 0x1p-8F), 1.0F);             // half way: the even one
    EXPECT_EQ(there(1.0F + 0x1.8p-7F), 1.0F + 0x1p-6F); // half way, the other way
    EXPECT_EQ(there(1.0F + 0x1.1p-8F), 1.0F + 0x1p-7F); // more than half
    EXPECT_EQ(there(-1.0F - 0x1.1p-8F), -1.0F - 0x1p-7F);
    EXPECT_TRUE(std::isinf(there(3.4e38F)));
    EXPECT_TRUE(std::isnan(there(std::bit_cast<float>(0x7f800001U)))); // its bits must not round to infinity
}

TEST(FloatValues, fp32StaysToTheBit)
{
    const float values[] = {0.1F, -0.0F, 1e-45F};
    float back[3] = {};
    std::byte stored[sizeof values];
    fromFloats(TensorType::F32, values, stored);
    toFloats(TensorType::F32, stored, back);
    EXPECT_EQ(std::memcmp(values, back, sizeof values), 0);
}

} // namespace shardscope::files
