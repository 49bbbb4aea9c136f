// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace shardscope::data {

/// Bytes that are part of no well-formed character (Unicode 15, table 3-7). For core/data's own files.
int64_t malformedBytes(std::string_view text);

} // namespace shardscope::data
