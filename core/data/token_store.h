// SPDX-License-Identifier: Apache-2.0
// One sequence of tokens that lies in one or many files.
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::data {

enum class TokenWidth { Byte = 1, Uint16 = 2, Uint32 = 4 };

/// The index-th token of bytes (little-endian, as all the machines that this runs on).
inline int64_t tokenAt(const std::byte *bytes, size_t index, TokenWidth width)
{
    uint16_t token16 = 0;
    uint32_t token32 = 0;
    switch (width) {
    case TokenWidth::Byte:
        return static_cast<int64_t>(bytes[index]);
    case TokenWidth::Uint16:
        std::memcpy(&token16, bytes + 2 * index, sizeof token16);
        return token16;
    case TokenWidth::Uint32:
        break;
    }
    std::memcpy(&token32, bytes + 4 * index, sizeof token32);
    return token32;
}

/// A file and the part of it that holds tokens.
struct TokenFile
{
    std::filesystem::path path;
    int64_t sizeBytes = 0;
    int64_t headerBytes = 0; ///< before the first token
};

class TokenStore
{
public:
    TokenStore() = default;
    /// Maps the large files and copies the small ones. A file that changed its size since it was listed is an error.
    /// separator (of TokenWidth::Byte alone): a token that is put between two files.
    static Result<TokenStore> open(const std::vector<TokenFile> &files, TokenWidth width,
                                   std::optional<uint8_t> separator = std::nullopt);

    int64_t tokens() const { return m_tokens; }
    TokenWidth width() const { return m_width; }
    /// Copies tokens [first, first + size) out.
    void read(int64_t first, std::span<int64_t> out) const;

    /// A run of tokens of one file (or the separator before it), for those who look at all of them.
    struct Segment
    {
        std::span<const std::byte> bytes;
        int64_t firstToken = 0;
        size_t file = 0; ///< index into what open() was given
    };
    const std::vector<Segment> &segments() const { return m_segments; }

private:
    void append(std::span<const std::byte> bytes, size_t file);

    TokenWidth m_width = TokenWidth::Byte;
    int64_t m_tokens = 0;
    std::vector<Segment> m_segments;                   ///< in order, none empty
    std::vector<std::shared_ptr<const void>> m_memory; ///< what the segments point into
};

} // namespace shardscope::data
