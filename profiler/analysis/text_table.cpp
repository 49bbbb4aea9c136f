// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/text_table.h"

#include <algorithm>

namespace shardscope::analysis {
namespace {

/// Characters, not bytes, of a UTF-8 text.
size_t widthOf(const std::string &text)
{
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

} // namespace

TextTable::TextTable(std::vector<std::string> header, size_t leftColumns)
    : m_rows{std::move(header)}
    , m_leftColumns(leftColumns)
{
}

void TextTable::add(std::vector<std::string> row)
{
    row.resize(m_rows.front().size());
    m_rows.push_back(std::move(row));
}

std::string TextTable::toText() const
{
    std::vector<size_t> widths(m_rows.front().size());
    for (const auto &row : m_rows) {
        for (size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], widthOf(row[i]));
    }
    std::string text;
    for (const auto &row : m_rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i) {
            const std::string space(widths[i] - widthOf(row[i]), ' ');
            line += i == 0 ? "" : "  ";
            line += i < m_leftColumns ? row[i] + space : space + row[i];
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += "  " + line + "\n";
    }
    return text;
}

} // namespace shardscope::analysis
