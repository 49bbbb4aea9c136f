// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shardscope::files {

/// XXH3, 64 bits: finds damage, not forgery.
uint64_t checksumOf(std::span<const std::byte> bytes);

/// "xxh3:0123456789abcdef", as manifests write it.
std::string checksumText(uint64_t checksum);
std::optional<uint64_t> parseChecksum(std::string_view text);

} // namespace shardscope::files
