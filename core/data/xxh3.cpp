// SPDX-License-Identifier: Apache-2.0
#include "core/data/xxh3.h"

#include <new>
#include <xxhash.h>

namespace shardscope::data {

// Both widths of digest have the same state in xxhash: it is filled once, whichever is asked for in the end.
Xxh3::Xxh3()
    : m_state(XXH3_createState())
{
    if (!m_state || XXH3_128bits_reset(m_state.get()) != XXH_OK)
        throw std::bad_alloc();
}

Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3 &&) noexcept = default;
Xxh3 &Xxh3::operator=(Xxh3 &&) noexcept = default;

void Xxh3::Free::operator()(XXH3_state_s *state) const
{
    XXH3_freeState(state);
}

void Xxh3::add(std::span<const std::byte> bytes)
{
    XXH3_128bits_update(m_state.get(), bytes.data(), bytes.size());
}

void Xxh3::add(std::string_view text)
{
    add(static_cast<int64_t>(text.size()));
    add(std::as_bytes(std::span(text)));
}

void Xxh3::add(int64_t number)
{
    add(std::as_bytes(std::span(&number, 1)));
}

uint64_t Xxh3::digest64() const
{
    return XXH3_64bits_digest(m_state.get());
}

std::array<uint64_t, 2> Xxh3::digest128() const
{
    const XXH128_hash_t digest = XXH3_128bits_digest(m_state.get());
    return {digest.high64, digest.low64};
}

} // namespace shardscope::data
