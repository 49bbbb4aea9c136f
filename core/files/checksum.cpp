// SPDX-License-Identifier: Apache-2.0
#include "core/files/checksum.h"

#include <charconv>
#include <fmt/format.h>
#include <xxhash.h>

namespace shardscope::files {

static constexpr std::string_view kPrefix = "xxh3:";
static constexpr size_t kDigits = 16;

uint64_t checksumOf(std::span<const std::byte> bytes)
{
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::string checksumText(uint64_t checksum)
{
    return checksumsText(std::span(&checksum, 1));
}

std::string checksumsText(std::span<const uint64_t> checksums)
{
    std::string text(kPrefix);
    text.reserve(kPrefix.size() + checksums.size() * (kDigits + 1));
    for (size_t i = 0; i < checksums.size(); ++i)
        fmt::format_to(std::back_inserter(text), "{}{:016x}", i == 0 ? "" : ",", checksums[i]);
    return text;
}

static std::optional<uint64_t> parseDigits(std::string_view digits)
{
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != kDigits || error != std::errc{} || end != digits.data() + digits.size())
        return std::nullopt;
    return value;
}

std::optional<std::vector<uint64_t>> parseChecksums(std::string_view text)
{
    if (!text.starts_with(kPrefix))
        return std::nullopt;
    text.remove_prefix(kPrefix.size());
    std::vector<uint64_t> checksums;
    while (!text.empty()) {
        const auto value = parseDigits(text.substr(0, kDigits));
        if (!value)
            return std::nullopt;
        checksums.push_back(*value);
        text.remove_prefix(kDigits);
        if (text.size() == 1 || (!text.empty() && text.front() != ','))
            return std::nullopt;
        text.remove_prefix(text.empty() ? 0 : 1);
    }
    return checksums;
}

std::optional<uint64_t> parseChecksum(std::string_view text)
{
    const auto all = parseChecksums(text);
    return all && all->size() == 1 ? std::optional(all->front()) : std::nullopt;
}

} // namespace shardscope::files
