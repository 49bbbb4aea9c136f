// SPDX-License-Identifier: Apache-2.0
// A file of tokens: little-endian ids, one after the other, with or without a header. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/token_store.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace shardscope::data {

/// The 1,024 bytes in front of the tokens, as llm.c has them for GPT-2 (uint16) and Llama 3 (uint32): a magic number, a
/// version and the number of tokens, each an int32. What llm.c leaves at zero holds what a cache must know of itself;
/// the number of tokens there too, which llm.c's int32 can't hold from 2^31 on (it is 0 then).
struct BinHeader
{
    static constexpr int64_t kBytes = 1024;

    TokenWidth width = TokenWidth::Uint16;
    int64_t tokens = 0;
    struct Cache
    {
        std::array<uint64_t, 2> key{}; ///< of what the tokens were made from
        uint64_t xxh3 = 0;             ///< of the tokens
        int64_t malformedBytes = 0;    ///< of the texts: what is no UTF-8
        bool operator==(const Cache &) const = default;
    };
    std::optional<Cache> cache; ///< of a file that this program wrote
};

std::array<std::byte, BinHeader::kBytes> encode(const BinHeader &header);
/// Nothing where the bytes are no header.
std::optional<BinHeader> decodeBinHeader(std::span<const std::byte> bytes);

struct BinFile
{
    TokenFile file;
    TokenWidth width = TokenWidth::Uint16;
    std::optional<BinHeader> header;
};

/// tokenBytes: 2, 4, or 0 for what the header says, else 4 where the vocabulary has more than 65,536 ids and 2 where it
/// has not. A file that is empty, cut off or contradicts tokenBytes is refused.
Result<BinFile> openBinFile(const std::filesystem::path &path, int64_t tokenBytes, int64_t vocabulary);

} // namespace shardscope::data
