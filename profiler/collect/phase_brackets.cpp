// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/phase_brackets.h"

#include <algorithm>

namespace shardscope::collect {

void PhaseBrackets::kernel(const SpanContext &context, int64_t startNs, int64_t endNs)
{
    if (m_open && m_open->context == context) {
        m_open->endNs = std::max(m_open->endNs, endNs);
        return;
    }
    close();
    m_open = Bracket{context, startNs, endNs};
}

void PhaseBrackets::close()
{
    if (m_open)
        m_sink(*m_open);
    m_open.reset();
}

} // namespace shardscope::collect
