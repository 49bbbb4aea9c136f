// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/sql_result.h"

#include "core/base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::store {
namespace {

std::string hexOf(const std::string &bytes)
{
    std::string hex;
    for (const char byte : bytes)
        hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return hex;
}

struct TextOf
{
    std::string operator()(std::monostate) const { return "NULL"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return formatDouble(value); }
    /// A table has a line a row: line ends and tabs become spaces.
    std::string operator()(const std::string &value) const
    {
        std::string line = value;
        std::replace_if(
            line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
        return line;
    }
    std::string operator()(const SqlBlob &value) const { return "0x" + hexOf(value.bytes); }
};

struct JsonOf
{
    nlohmann::ordered_json operator()(std::monostate) const { return nullptr; }
    nlohmann::ordered_json operator()(int64_t value) const { return value; }
    nlohmann::ordered_json operator()(double value) const { return value; }
    nlohmann::ordered_json operator()(const std::string &value) const { return value; }
    nlohmann::ordered_json operator()(const SqlBlob &value) const { return hexOf(value.bytes); }
};

bool isNumber(const SqlValue &value)
{
    return std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
}

/// Characters, not bytes: what follows the first byte of a UTF-8 character is not counted.
size_t widthOf(const std::string &text)
{
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void appendCell(std::string &line, const std::string &text, size_t width, bool toTheRight, bool isLast)
{
    const std::string space(width - std::min(width, widthOf(text)), ' ');
    line += toTheRight ? space + text : isLast ? text : text + space;
    line += isLast ? "\n" : "  ";
}

} // namespace

std::string SqlResult::toText() const
{
    std::vector<size_t> widths;
    std::vector<char> numeric(columns.size(), !rows.empty());
    for (const std::string &column : columns)
        widths.push_back(widthOf(column));
    std::vector<std::vector<std::string>> cells;
    for (const auto &row : rows) {
        auto &texts = cells.emplace_back();
        for (size_t i = 0; i < row.size(); ++i) {
            texts.push_back(std::visit(TextOf(), row[i]));
            widths[i] = std::max(widths[i], widthOf(texts[i]));
            numeric[i] = numeric[i] && (isNumber(row[i]) || std::holds_alternative<std::monostate>(row[i]));
        }
    }
    std::string text;
    for (size_t i = 0; i < columns.size(); ++i)
        appendCell(text, columns[i], widths[i], numeric[i], i + 1 == columns.size());
    for (const auto &row : cells) {
        for (size_t i = 0; i < row.size(); ++i)
            appendCell(text, row[i], widths[i], numeric[i], i + 1 == row.size());
    }
    if (truncated)
        text += fmt::format("(only the first {} rows)\n", rows.size());
    return text;
}

std::string SqlResult::toJson() const
{
    nlohmann::ordered_json json;
    json["columns"] = columns;
    auto &list = json["rows"] = nlohmann::ordered_json::array();
    for (const auto &row : rows) {
        auto &values = list.emplace_back(nlohmann::ordered_json::array());
        for (const SqlValue &value : row)
            values.emplace_back(std::visit(JsonOf(), value));
    }
    json["truncated"] = truncated;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace shardscope::store
