// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardscope::collect {

/// How many samples of memory a step takes: every boundary of a phase or unit where there are few, each n-th where
/// there are many. What the step before had tells which.
class MemorySampling
{
public:
    explicit MemorySampling(int64_t samplesPerStep)
        : m_limit(samplesPerStep)
    {
    }

    /// Between two steps.
    void setLimit(int64_t samplesPerStep) { m_limit = samplesPerStep; }

    void stepBegan()
    {
        // A step without boundaries tells nothing of the next.
        if (m_boundaries > 0)
            m_stride = (m_boundaries + m_limit - 1) / m_limit;
        m_boundaries = 0;
        m_taken = 0;
    }
    /// Is this boundary worth a sample?
    bool boundary() { return m_boundaries++ % m_stride == 0 && take(); }
    /// Someone asks for one.
    bool take() { return m_taken < m_limit && ++m_taken; }

private:
    int64_t m_limit;
    int64_t m_stride = 1;
    int64_t m_boundaries = 0;
    int64_t m_taken = 0;
};

} // namespace shardscope::collect
