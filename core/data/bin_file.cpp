// SPDX-License-Identifier: Apache-2.0
#include "core/data/bin_file.h"

#include "core/data/unreadable.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace shardscope::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kLargestUint16Vocabulary = 65536;
constexpr int64_t kOwnOffset = 64; ///< of what llm.c leaves at zero

/// magic and version of llm.c's data files
constexpr std::array<int32_t, 2> kUint16Kind = {20240520, 1};
constexpr std::array<int32_t, 2> kUint32Kind = {20240801, 7};

struct OwnFields
{
    std::array<char, 8> tag = {'s', 'h', 'r', 'd', 't', 'o', 'k', '1'};
    int64_t tokens = 0;
    BinHeader::Cache cache;
};

template <typename T>
T read(std::span<const std::byte> bytes, size_t offset)
{
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

Result<std::optional<BinHeader>> headerOf(const fs::path &path, int64_t sizeBytes)
{
    if (sizeBytes < BinHeader::kBytes)
        return std::nullopt;
    std::array<std::byte, BinHeader::kBytes> bytes{};
    std::ifstream in(path, std::ios::binary);
    if (!in.read(reinterpret_cast<char *>(bytes.data()), bytes.size()))
        return unreadable(path, errno);
    return decodeBinHeader(bytes);
}

Result<TokenWidth> widthOf(const fs::path &path, const std::optional<BinHeader> &header, int64_t tokenBytes,
                           int64_t vocabulary)
{
    if (tokenBytes != 0 && tokenBytes != 2 && tokenBytes != 4)
        return fail("data.token_bytes = {} is neither 2 (uint16) nor 4 (uint32).", tokenBytes);
    const auto asked = static_cast<TokenWidth>(tokenBytes);
    if (header && tokenBytes != 0 && asked != header->width)
        return fail("{} has a header by which its tokens have {} bytes each, and data.token_bytes is {}. Leave "
                    "data.token_bytes at auto.",
                    path.string(), static_cast<int>(header->width), tokenBytes);
    if (header)
        return header->width;
    if (tokenBytes != 0)
        return asked;
    return vocabulary > kLargestUint16Vocabulary ? TokenWidth::Uint32 : TokenWidth::Uint16;
}

} // namespace

std::array<std::byte, BinHeader::kBytes> encode(const BinHeader &header)
{
    std::array<std::byte, BinHeader::kBytes> bytes{};
    const auto &kind = header.width == TokenWidth::Uint32 ? kUint32Kind : kUint16Kind;
    const bool fits = header.tokens <= std::numeric_limits<int32_t>::max();
    const std::array<int32_t, 3> start = {kind[0], kind[1], fits ? static_cast<int32_t>(header.tokens) : 0};
    std::memcpy(bytes.data(), start.data(), sizeof start);
    if (header.cache) {
        OwnFields own;
        own.tokens = header.tokens;
        own.cache = *header.cache;
        static_assert(sizeof own == 48 && std::is_trivially_copyable_v<OwnFields>);
        std::memcpy(bytes.data() + kOwnOffset, &own, sizeof own);
    }
    return bytes;
}

std::optional<BinHeader> decodeBinHeader(std::span<const std::byte> bytes)
{
    if (std::ssize(bytes) < BinHeader::kBytes)
        return std::nullopt;
    const auto kind = read<std::array<int32_t, 2>>(bytes, 0);
    if (kind != kUint16Kind && kind != kUint32Kind)
        return std::nullopt;
    BinHeader header;
    header.width = kind == kUint32Kind ? TokenWidth::Uint32 : TokenWidth::Uint16;
    header.tokens = read<int32_t>(bytes, 8);
    const auto own = read<OwnFields>(bytes, kOwnOffset);
    if (own.tag == OwnFields().tag) {
        header.tokens = own.tokens;
        header.cache = own.cache;
    }
    return header;
}

Result<BinFile> openBinFile(const fs::path &path, int64_t tokenBytes, int64_t vocabulary)
{
    std::error_code error;
    const auto sizeBytes = static_cast<int64_t>(fs::file_size(path, error));
    if (error)
        return unreadable(path, error);
    if (sizeBytes == 0)
        return fail("{} is empty. Write its tokens anew, or name other data with --data.", path.string());
    const auto header = headerOf(path, sizeBytes);
    if (!header)
        return tl::unexpected(header.error());
    const auto width = widthOf(path, *header, tokenBytes, vocabulary);
    if (!width)
        return tl::unexpected(width.error());
    const auto bytesOfToken = static_cast<int64_t>(*width);
    const int64_t headerBytes = *header ? BinHeader::kBytes : 0;
    if (*header && sizeBytes != headerBytes + (*header)->tokens * bytesOfToken)
        return fail("{} is cut off or was written over: its header speaks of {} tokens of {} bytes, and {} bytes "
                    "follow it. Write it anew.",
                    path.string(), (*header)->tokens, bytesOfToken, sizeBytes - headerBytes);
    if (sizeBytes % bytesOfToken != 0)
        return fail("{} has {} bytes, and tokens of {} bytes each were expected (uint{}): the file is cut off or is "
                    "something else.{}",
                    path.string(), sizeBytes, bytesOfToken, 8 * bytesOfToken,
                    *width == TokenWidth::Uint32 && sizeBytes % 2 == 0
                        ? " If its tokens are uint16, set data.token_bytes = 2, else write it anew."
                        : " Write it anew, or name other data with --data.");
    return BinFile{{path, sizeBytes, headerBytes}, *width, *header};
}

} // namespace shardscope::data
