// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::collect {

/// The buffers that CUPTI fills. Its callbacks carry no pointer of ours, so this is the one piece of process-wide state
/// here; it holds memory and nothing else.
class CuptiBuffers
{
public:
    /// CUPTI returns a buffer early only where all its records are done, which they seldom are while the host runs
    /// ahead: a small buffer is full soon. This one holds some 3,000 launches with their correlations, about three
    /// steps of an eager model.
    static constexpr size_t kBytes = 1 << 20;

    struct Full
    {
        uint8_t *data = nullptr;
        size_t validBytes = 0;
    };

    /// The callbacks of cuptiActivityRegisterCallbacks.
    static void requested(uint8_t **buffer, size_t *size, size_t *maximumRecords);
    static void completed(void *context, uint32_t streamId, uint8_t *buffer, size_t size, size_t validSize);

    /// What has been completed since the last call. Each goes back by release().
    static std::vector<Full> take();
    static void release(const Full &buffer);
};

} // namespace shardscope::collect
