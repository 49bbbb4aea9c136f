// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace shardscope::analysis {

/// A table for a terminal. The first `leftColumns` columns stand to the left, the others, numbers, to the right.
class TextTable
{
public:
    TextTable(std::vector<std::string> header, size_t leftColumns);
    void add(std::vector<std::string> row);
    bool empty() const { return m_rows.size() == 1; }
    std::string toText() const;

private:
    std::vector<std::vector<std::string>> m_rows;
    size_t m_leftColumns;
};

} // namespace shardscope::analysis
