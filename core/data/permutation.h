// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardscope::data {

/// A random-looking order of [0, size) that needs no table: a Feistel network on the next power of four, walked on
/// until it lands inside (fewer than four steps on average). Equal for equal (seed, epoch) on every machine.
class Permutation
{
public:
    /// size ≥ 1
    Permutation(uint64_t size, uint64_t seed, uint64_t epoch);

    /// index < size; distinct indices give distinct results below size.
    uint64_t operator()(uint64_t index) const;

private:
    uint64_t scramble(uint64_t value) const;

    static constexpr int kRounds = 6;
    uint64_t m_size;
    int m_halfBits;
    uint64_t m_keys[kRounds];
};

} // namespace shardscope::data
