// SPDX-License-Identifier: Apache-2.0
#include "core/data/permutation.h"

#include <bit>

namespace shardscope::data {

/// SplitMix64's finalizer (Steele, Lea, Flood 2014): every input bit reaches every output bit.
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t epoch)
    : m_size(size)
    , m_halfBits((std::bit_width(size - 1) + 1) / 2)
{
    uint64_t key = mix(mix(seed + 0x9E3779B97F4A7C15ULL) + epoch);
    for (uint64_t &round : m_keys)
        round = key = mix(key + 0x9E3779B97F4A7C15ULL);
}

uint64_t Permutation::scramble(uint64_t value) const
{
    const uint64_t mask = (uint64_t{1} << m_halfBits) - 1;
    uint64_t left = value >> m_halfBits;
    uint64_t right = value & mask;
    for (const uint64_t key : m_keys) {
        const uint64_t next = left ^ (mix(right ^ key) & mask);
        left = right;
        right = next;
    }
    return left << m_halfBits | right;
}

uint64_t Permutation::operator()(uint64_t index) const
{
    do
        index = scramble(index);
    while (index >= m_size);
    return index;
}

} // namespace shardscope::data
