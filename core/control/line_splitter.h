// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::control {

/// Makes lines of a stream of bytes. Lines longer than the limit are dropped whole and counted, so that a broken peer
/// can't fill the memory.
class LineSplitter
{
public:
    explicit LineSplitter(size_t longestLine = 1 << 20);
    /// The lines that these bytes complete, without their newlines; empty lines are left out.
    std::vector<std::string> add(std::string_view bytes);
    size_t droppedLines() const { return m_dropped; }

private:
    size_t m_longest;
    std::string m_pending;
    bool m_skipping = false;
    size_t m_dropped = 0;
};

} // namespace shardscope::control
