// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

struct XXH3_state_s;

namespace shardscope::data {

/// XXH3 of bytes that come in parts. For core/data's own files.
class Xxh3
{
public:
    Xxh3(); ///< throws std::bad_alloc
    ~Xxh3();
    Xxh3(Xxh3 &&) noexcept;
    Xxh3 &operator=(Xxh3 &&) noexcept;

    void add(std::span<const std::byte> bytes);
    /// Its length first, so that texts don't run into each other.
    void add(std::string_view text);
    void add(int64_t number);

    uint64_t digest64() const;
    /// High half first. For names of files that must never be taken for each other.
    std::array<uint64_t, 2> digest128() const;

private:
    struct Free
    {
        void operator()(XXH3_state_s *state) const;
    };
    std::unique_ptr<XXH3_state_s, Free> m_state;
};

} // namespace shardscope::data
