// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardscope::shapes {

/// Each state in a rank's offload file begins at a multiple of it and takes whole blocks, which O_DIRECT wants.
inline constexpr int64_t kFileBlockBytes = 4096;

constexpr int64_t wholeFileBlocks(int64_t bytes)
{
    return (bytes + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
}

/// What a rank writes to the drive, to measure it, before anything else; it is given back then.
inline constexpr int64_t kMeasuredFileBytes = int64_t{16} << 20;

} // namespace shardscope::shapes
