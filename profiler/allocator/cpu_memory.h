// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/memory_source.h"

#include <memory>

namespace shardscope::allocator {

/// Puts itself in front of LibTorch's CPU allocator for the rest of the process and sees every allocation and free, on
/// every thread. Call before the first tensor that is to be counted; what was allocated before is not.
/// Bytes are those asked for: the CPU allocator rounds nothing up.
std::shared_ptr<collect::MemorySource> trackCpuMemory(std::shared_ptr<collect::CurrentMemoryTag> tag);

} // namespace shardscope::allocator
