// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_scan.h"

#include "core/data/width_check.h"
#include "core/data/xxh3.h"

#include <algorithm>

namespace shardscope::data {

namespace {

constexpr size_t kBlockBytes = 256 * 1024; ///< stays in the cache between the two looks at it

/// A loop that the compiler turns into vector instructions.
template <typename Token>
int64_t largestOf(std::span<const std::byte> bytes)
{
    Token largest = 0;
    for (size_t i = 0; i + sizeof(Token) <= bytes.size(); i += sizeof(Token)) {
        Token token = 0;
        std::memcpy(&token, bytes.data() + i, sizeof token);
        largest = std::max(largest, token);
    }
    return largest;
}

int64_t largestToken(std::span<const std::byte> bytes, TokenWidth width)
{
    switch (width) {
    case TokenWidth::Byte:
        return largestOf<uint8_t>(bytes);
    case TokenWidth::Uint16:
        return largestOf<uint16_t>(bytes);
    case TokenWidth::Uint32:
        break;
    }
    return largestOf<uint32_t>(bytes);
}

tl::unexpected<Error> beyondVocabulary(const TokenStore::Segment &segment, size_t blockOffset, const TokenFile &file,
                                       TokenWidth width, int64_t vocabulary)
{
    size_t index = blockOffset / static_cast<size_t>(width);
    while (tokenAt(segment.bytes.data(), index, width) < vocabulary)
        ++index;
    return fail("{}: the token at position {} has id {}, and the model's vocabulary ends at {}. {}", file.path.string(),
                index, tokenAt(segment.bytes.data(), index, width), vocabulary - 1,
                remedyFor(segment.bytes, width, vocabulary)
                    .value_or("Use a model with a larger vocabulary, or tokens made for this one."));
}

} // namespace

Result<TokenScan> scanTokens(const TokenStore &store, const std::vector<TokenFile> &files, int64_t vocabulary,
                             const ProgressFunction &progress)
{
    Xxh3 hash;
    TokenScan scan;
    const auto width = static_cast<int64_t>(store.width());
    ProgressMeter meter(progress, DataPhase::Checking, store.tokens() * width);
    for (const TokenStore::Segment &segment : store.segments()) {
        const TokenFile &file = files[segment.file];
        for (size_t offset = 0; offset < segment.bytes.size(); offset += kBlockBytes) {
            const auto block = segment.bytes.subspan(offset, std::min(kBlockBytes, segment.bytes.size() - offset));
            hash.add(block);
            scan.largest = std::max(scan.largest, largestToken(block, store.width()));
            if (scan.largest >= vocabulary)
                return beyondVocabulary(segment, offset, file, store.width(), vocabulary);
            if (auto told = meter.add(std::ssize(block)); !told)
                return tl::unexpected(told.error());
        }
        const auto wrong = file.headerBytes == 0 ? wrongWidth(segment.bytes, store.width()) : std::nullopt;
        if (wrong)
            return fail("{}: {}", file.path.string(), *wrong);
    }
    scan.xxh3 = hash.digest64();
    return scan;
}

} // namespace shardscope::data
