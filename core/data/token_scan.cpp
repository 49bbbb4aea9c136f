// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_scan.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <xxhash.h>

namespace shardscope::data {

namespace {

constexpr size_t kBlockBytes = 256 * 1024; ///< stays in the cache between the two looks at it

int64_t tokenAt(std::span<const std::byte> bytes, size_t index, TokenWidth width)
{
    if (width == TokenWidth::Byte)
        return static_cast<int64_t>(bytes[index]);
    uint16_t token = 0;
    std::memcpy(&token, bytes.data() + 2 * index, sizeof token);
    return token;
}

/// A loop that the compiler turns into vector instructions.
int64_t largestToken(std::span<const std::byte> bytes, TokenWidth width)
{
    if (width == TokenWidth::Byte)
        return static_cast<int64_t>(*std::ranges::max_element(bytes));
    uint16_t largest = 0;
    for (size_t i = 0; i < bytes.size(); i += 2) {
        uint16_t token = 0;
        std::memcpy(&token, bytes.data() + i, sizeof token);
        largest = std::max(largest, token);
    }
    return largest;
}

tl::unexpected<Error> beyondVocabulary(std::span<const std::byte> block, int64_t positionInFile, const TokenFile &file,
                                       TokenWidth width, int64_t vocabulary)
{
    size_t index = 0;
    while (tokenAt(block, index, width) < vocabulary)
        ++index;
    return fail(
        "{}: the token at position {} has id {}, and the model's vocabulary ends at {}. Use a model with a larger "
        "vocabulary, or tokens made for this one.",
        file.path.string(), positionInFile + static_cast<int64_t>(index), tokenAt(block, index, width), vocabulary - 1);
}

} // namespace

Result<std::string> scanTokens(const TokenStore &store, const std::vector<TokenFile> &files, int64_t vocabulary)
{
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(), &XXH3_freeState);
    if (!hash || XXH3_64bits_reset(hash.get()) != XXH_OK)
        return fail("Out of memory while the data were checked.");
    const auto width = static_cast<int64_t>(store.width());
    const int64_t largestPossible = store.width() == TokenWidth::Byte ? 255 : 65535;
    for (const TokenStore::Segment &segment : store.segments()) {
        for (size_t offset = 0; offset < segment.bytes.size(); offset += kBlockBytes) {
            const auto block = segment.bytes.subspan(offset, std::min(kBlockBytes, segment.bytes.size() - offset));
            XXH3_64bits_update(hash.get(), block.data(), block.size());
            if (largestPossible >= vocabulary && largestToken(block, store.width()) >= vocabulary)
                return beyondVocabulary(block, static_cast<int64_t>(offset) / width, files[segment.file], store.width(),
                                        vocabulary);
        }
    }
    return fmt::format("{:016x}", XXH3_64bits_digest(hash.get()));
}

} // namespace shardscope::data
