// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscope::shapes {

/// What is live, and the most that ever was.
class MemoryWalk
{
public:
    void take(int64_t bytes)
    {
        m_live += bytes;
        m_peak = std::max(m_peak, m_live);
    }
    void give(int64_t bytes) { m_live -= bytes; }
    /// For the length of one operation.
    void use(int64_t bytes)
    {
        take(bytes);
        give(bytes);
    }
    int64_t live() const { return m_live; }
    int64_t peak() const { return m_peak; }

private:
    int64_t m_live = 0;
    int64_t m_peak = 0;
};

} // namespace shardscope::shapes
