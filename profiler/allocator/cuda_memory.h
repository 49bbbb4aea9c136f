// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "profiler/collect/memory_source.h"
#include "profiler/collect/recorder.h"

#include <memory>

namespace shardscope::allocator {

/// Follows LibTorch's caching allocator on one device by its trace tracker, which runs under the allocator's lock. Call
/// before the first tensor on the device: what is live by then is counted as "other".
/// An error where there is no such device or the allocator is not the native one.
Result<std::shared_ptr<collect::MemorySource>> trackCudaMemory(int32_t ordinal,
                                                               std::shared_ptr<collect::CurrentMemoryTag> tag);

/// Name, UUID, PCI address, memory and size of a device.
Result<collect::DeviceDescription> describeCudaDevice(int32_t ordinal);

} // namespace shardscope::allocator
