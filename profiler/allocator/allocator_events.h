// SPDX-License-Identifier: Apache-2.0
// What a caching allocator tells, without its headers.
#pragma once

#include <cstdint>

namespace shardscope::allocator {

struct AllocatorEvent
{
    enum class Kind {
        Allocated,     ///< told before the allocator's statistics know it
        FreeRequested, ///< by the program; its bytes may already be missing in `allocatedBytes`, not yet in the others
        FreeCompleted, ///< no stream uses it any more; told before the statistics know it
        Other          ///< segments, running out of memory
    };
    Kind kind = Kind::Other;
    uint64_t address = 0;
    int64_t bytes = 0; ///< asked for
};

struct AllocatorStatistics
{
    int64_t allocatedBytes = 0; ///< blocks that the program holds
    int64_t activeBytes = 0;    ///< and those whose free waits for a stream
    int64_t reservedBytes = 0;
    int64_t requestedBytes = 0; ///< asked for, in active blocks
};

} // namespace shardscope::allocator
