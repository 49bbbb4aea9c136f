// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardscope::engine {

/// Whole pages of host memory for copies from and to a device. (LibTorch's pinned allocator rounds up to powers of two,
/// which for gigabytes is too much.)
class HostBuffer
{
public:
    /// pinned: registered with CUDA, so that copies run beside computation. what: for the message where memory lacks,
    /// "offloaded activations".
    static Result<HostBuffer> allocate(int64_t bytes, bool pinned, std::string_view what);

    /// What allocate() makes of so many bytes.
    static int64_t wholePages(int64_t bytes);

    HostBuffer() = default;
    HostBuffer(HostBuffer &&other) noexcept { swap(other); }
    HostBuffer &operator=(HostBuffer &&other) noexcept
    {
        swap(other);
        return *this;
    }
    /// No copy may be under way.
    ~HostBuffer();

    std::byte *data() const { return m_data; }
    int64_t bytes() const { return m_bytes; } ///< whole pages

private:
    void swap(HostBuffer &other) noexcept;

    std::byte *m_data = nullptr;
    int64_t m_bytes = 0;
    bool m_pinned = false;
};

} // namespace shardscope::engine
