// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::files {

/// XXH3, 64 bits: finds damage, not forgery.
uint64_t checksumOf(std::span<const std::byte> bytes);

/// "xxh3:0123456789abcdef", as manifests write it; several: "xxh3:0123456789abcdef,0123456789abcdef".
std::string checksumText(uint64_t checksum);
std::string checksumsText(std::span<const uint64_t> checksums);
std::optional<uint64_t> parseChecksum(std::string_view text);
std::optional<std::vector<uint64_t>> parseChecksums(std::string_view text);

} // namespace shardscope::files
