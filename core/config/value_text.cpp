// SPDX-License-Identifier: Apache-2.0
#include "core/config/value_text.h"

#include "core/base/text.h"

#include <charconv>

namespace shardscope::config {

std::string_view trimmed(std::string_view text)
{
    const size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The number of bytes of the UTF-8 sequence at the text's start; 0 where it is malformed, overlong or a surrogate.
static size_t sequenceLength(std::string_view text)
{
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 0 || text.size() < length)
        return 0;
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80)
            return 0;
    }
    const bool isOverlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
    const bool isBeyond = (lead == 0xED && byte(1) >= 0xA0) || (lead == 0xF4 && byte(1) >= 0x90);
    return isOverlong || isBeyond ? 0 : length;
}

bool isPlainText(std::string_view text)
{
    while (!text.empty()) {
        const size_t length = sequenceLength(text);
        if (length == 0 || static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F)
            return false;
        text.remove_prefix(length);
    }
    return true;
}

template <typename T>
static std::optional<T> parseNumber(std::string_view text)
{
    text = trimmed(text);
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

static std::vector<std::string_view> splitList(std::string_view text)
{
    std::vector<std::string_view> parts;
    if (trimmed(text).empty())
        return parts;
    for (size_t comma; (comma = text.find(',')) != std::string_view::npos; text.remove_prefix(comma + 1))
        parts.push_back(trimmed(text.substr(0, comma)));
    parts.push_back(trimmed(text));
    return parts;
}

template <typename T>
static std::optional<Value> parseNumbers(std::string_view text)
{
    std::vector<T> numbers;
    for (const std::string_view part : splitList(text)) {
        const std::optional<T> number = parseNumber<T>(part);
        if (!number)
            return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

static std::optional<Value> parseBoolean(std::string_view text)
{
    text = trimmed(text);
    if (text == "true" || text == "on" || text == "yes")
        return true;
    if (text == "false" || text == "off" || text == "no")
        return false;
    return std::nullopt;
}

std::optional<Value> parseValue(const Key &key, std::string_view text)
{
    if (key.automatic && trimmed(text) == kAutomatic)
        return std::string(kAutomatic);
    switch (key.type()) {
    case KeyType::Boolean:
        return parseBoolean(text);
    case KeyType::Integer:
        return parseNumber<int64_t>(text);
    case KeyType::Real:
        return parseNumber<double>(text);
    case KeyType::Text:
        return std::string(text);
    case KeyType::Choice:
        return std::string(trimmed(text));
    case KeyType::IntegerList:
        return parseNumbers<int64_t>(text);
    case KeyType::RealList:
        return parseNumbers<double>(text);
    case KeyType::TextList: {
        const std::vector<std::string_view> parts = splitList(text);
        return std::vector<std::string>(parts.begin(), parts.end());
    }
    }
    return std::nullopt;
}

std::string textOf(const Value &value)
{
    return std::visit(
        []<typename T>(const T &v) -> std::string {
            if constexpr (std::is_same_v<T, std::string>)
                return v;
            else if constexpr (std::is_same_v<T, bool>)
                return v ? "true" : "false";
            else if constexpr (std::is_arithmetic_v<T>)
                return fmt::format("{}", v);
            else
                return fmt::format("{}", fmt::join(v, ","));
        },
        value);
}

/// "≥ 1", "from 0 to 0.5", "> 0 and ≤ 1"; empty where everything is allowed.
static std::string rangeText(const Range &range)
{
    if (range.minimum && range.maximum && !range.minimumExcluded && !range.maximumExcluded)
        return fmt::format("from {} to {}", *range.minimum, *range.maximum);
    std::string text;
    if (range.minimum)
        text = fmt::format("{} {}", range.minimumExcluded ? ">" : "≥", *range.minimum);
    if (range.maximum)
        text += fmt::format("{}{} {}", text.empty() ? "" : " and ", range.maximumExcluded ? "<" : "≤", *range.maximum);
    return text;
}

static std::string_view nounOf(const Key &key)
{
    switch (key.type()) {
    case KeyType::Boolean:
        return "true or false";
    case KeyType::Integer:
        return "an integer";
    case KeyType::Real:
        return "a number";
    case KeyType::IntegerList:
        return "integers separated by commas, each";
    case KeyType::RealList:
        return "numbers separated by commas, each";
    case KeyType::TextList:
        return "words separated by commas";
    case KeyType::Text:
    case KeyType::Choice:
        break;
    }
    return "text in UTF-8 without control characters";
}

std::string allowedText(const Key &key)
{
    if (key.type() == KeyType::Choice)
        return fmt::format("one of {}", fmt::join(key.choices, ", "));
    std::string text = key.length ? fmt::format("{} {}", key.length, nounOf(key)) : std::string(nounOf(key));
    if (const std::string range = rangeText(key.range); !range.empty())
        text += " " + range;
    if (!key.unit.empty())
        text += fmt::format(" ({})", key.unit);
    return key.automatic ? text + ", or auto" : text;
}

std::string describe(const Key &key)
{
    const std::string standard = textOf(defaultOf(key));
    std::string allowed = allowedText(key);
    if (key.type() == KeyType::Text)
        allowed = "text";
    return fmt::format("{}  {} Takes {}; default {}.", key.path, key.help, allowed,
                       standard.empty() ? "empty" : standard);
}

} // namespace shardscope::config
