// SPDX-License-Identifier: Apache-2.0
#include "core/control/line_splitter.h"

namespace shardscope::control {

LineSplitter::LineSplitter(size_t longestLine)
    : m_longest(longestLine)
{
}

std::vector<std::string> LineSplitter::add(std::string_view bytes)
{
    std::vector<std::string> lines;
    while (!bytes.empty()) {
        const size_t newline = bytes.find('\n');
        const std::string_view part = bytes.substr(0, newline);
        if (!m_skipping && m_pending.size() + part.size() > m_longest) {
            m_skipping = true;
            m_pending.clear();
            ++m_dropped;
        }
        if (!m_skipping)
            m_pending += part;
        if (newline == std::string_view::npos)
            break;
        if (!m_skipping && !m_pending.empty())
            lines.push_back(std::move(m_pending));
        m_pending.clear();
        m_skipping = false;
        bytes.remove_prefix(newline + 1);
    }
    return lines;
}

} // namespace shardscope::control
