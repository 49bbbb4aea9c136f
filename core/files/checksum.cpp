// SPDX-License-Identifier: Apache-2.0
#include "core/files/checksum.h"

#include <charconv>
#include <fmt/format.h>
#include <xxhash.h>

namespace shardscope::files {

static constexpr std::string_view kPrefix = "xxh3:";

uint64_t checksumOf(std::span<const std::byte> bytes)
{
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::string checksumText(uint64_t checksum)
{
    return fmt::format("{}{:016x}", kPrefix, checksum);
}

std::optional<uint64_t> parseChecksum(std::string_view text)
{
    if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + 16)
        return std::nullopt;
    text.remove_prefix(kPrefix.size());
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

} // namespace shardscope::files
