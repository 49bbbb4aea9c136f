// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/cupti_buffers.h"

#include <cstdlib>
#include <mutex>
#include <utility>

namespace shardscope::collect {

namespace {

struct Shared
{
    std::mutex mutex;
    std::vector<CuptiBuffers::Full> full;
    std::vector<uint8_t *> spare;
};

/// Never destroyed: CUPTI's own thread may call back while the process ends.
Shared &shared()
{
    static auto *instance = new Shared;
    return *instance;
}

/// More are given back to the system; a few serve for as long as the reader keeps up.
constexpr size_t kSpares = 8;

} // namespace

void CuptiBuffers::requested(uint8_t **buffer, size_t *size, size_t *maximumRecords)
{
    *maximumRecords = 0;
    *size = kBytes;
    *buffer = nullptr;
    {
        Shared &state = shared();
        const std::lock_guard lock(state.mutex);
        if (!state.spare.empty()) {
            *buffer = state.spare.back();
            state.spare.pop_back();
        }
    }
    // Out of memory gives null, which CUPTI takes from version 27 on as "drop and count".
    if (!*buffer)
        *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBytes));
}

void CuptiBuffers::completed(void *, uint32_t, uint8_t *buffer, size_t, size_t validSize)
{
    if (!buffer)
        return;
    Shared &state = shared();
    const std::lock_guard lock(state.mutex);
    state.full.push_back({buffer, validSize});
}

std::vector<CuptiBuffers::Full> CuptiBuffers::take()
{
    Shared &state = shared();
    const std::lock_guard lock(state.mutex);
    return std::exchange(state.full, {});
}

void CuptiBuffers::release(const Full &buffer)
{
    Shared &state = shared();
    {
        const std::lock_guard lock(state.mutex);
        if (state.spare.size() < kSpares) {
            state.spare.push_back(buffer.data);
            return;
        }
    }
    std::free(buffer.data);
}

} // namespace shardscope::collect
