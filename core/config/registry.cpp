// SPDX-License-Identifier: Apache-2.0
#include "core/config/registry.h"

#include "core/base/text.h"
#include "core/config/value_text.h"

#include <algorithm>
#include <cmath>

namespace shardscope::config {

bool Range::contains(double number) const
{
    if (!std::isfinite(number))
        return false;
    const bool largeEnough = !minimum || (minimumExcluded ? number > *minimum : number >= *minimum);
    const bool smallEnough = !maximum || (maximumExcluded ? number < *maximum : number <= *maximum);
    return largeEnough && smallEnough;
}

template <typename F>
constexpr KeyType typeOfField()
{
    using T = std::remove_pointer_t<F>;
    if constexpr (std::is_same_v<T, bool>)
        return KeyType::Boolean;
    else if constexpr (std::is_same_v<T, int64_t>)
        return KeyType::Integer;
    else if constexpr (std::is_same_v<T, double>)
        return KeyType::Real;
    else if constexpr (std::is_same_v<T, std::string>)
        return KeyType::Text;
    else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
        return KeyType::IntegerList;
    else if constexpr (std::is_same_v<T, std::vector<double>>)
        return KeyType::RealList;
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
        return KeyType::TextList;
    else
        return KeyType::Choice;
}

KeyType Key::type() const
{
    if (!choices.empty())
        return KeyType::Choice;
    RunConfiguration defaults;
    return std::visit([]<typename F>(const F &) { return typeOfField<F>(); }, field(defaults));
}

std::string_view Key::section() const
{
    return path.substr(0, path.find('.'));
}

std::string_view Key::name() const
{
    return path.substr(path.find('.') + 1);
}

Result<const Key *> findKey(std::string_view path)
{
    const auto found = std::ranges::find(keys(), path, &Key::path);
    if (found != keys().end())
        return &*found;
    std::vector<std::string> paths;
    for (const Key &key : keys())
        paths.emplace_back(key.path);
    if (const auto nearest = nearestName(path, paths))
        return fail("Unknown key {}. Did you mean {}?", path, *nearest);
    return fail("Unknown key {}. `shardscope-cli run --help` lists all keys.", path);
}

Value valueOf(const RunConfiguration &configuration, const Key &key)
{
    // The bindings give pointers through which setValue() writes; nothing is written here.
    Value value = std::visit(
        []<typename F>(const F &field) -> Value {
            if constexpr (std::is_enum_v<std::remove_pointer_t<F>>)
                return std::string(toText(*field));
            else
                return *field;
        },
        key.field(const_cast<RunConfiguration &>(configuration)));
    if (key.automatic) {
        const auto *integer = std::get_if<int64_t>(&value);
        const auto *real = std::get_if<double>(&value);
        if ((integer && static_cast<double>(*integer) == *key.automatic) || (real && *real == *key.automatic))
            return std::string(kAutomatic);
    }
    return value;
}

Value defaultOf(const Key &key)
{
    return valueOf(RunConfiguration{}, key);
}

/// Where a value is of the right type: whether it is in range, of the right length and fit for a file.
static bool isAllowed(const Key &key, const Value &value)
{
    const auto inRange = [&](auto number) { return key.range.contains(static_cast<double>(number)); };
    return std::visit(
        [&]<typename T>(const T &v) {
            if constexpr (std::is_same_v<T, bool>)
                return true;
            else if constexpr (std::is_same_v<T, std::string>)
                return isPlainText(v) &&
                       (key.choices.empty() || std::ranges::find(key.choices, v) != key.choices.end());
            else if constexpr (std::is_arithmetic_v<T>)
                return inRange(v);
            else if (key.length && v.size() != key.length)
                return false;
            else if constexpr (std::is_same_v<T, std::vector<std::string>>)
                return std::ranges::all_of(v, isPlainText);
            else
                return std::ranges::all_of(v, inRange);
        },
        value);
}

/// Integers serve where real numbers are wanted, and an empty list serves as any list.
static Value adapted(const Value &value, KeyType type)
{
    if (type == KeyType::Real) {
        if (const auto *integer = std::get_if<int64_t>(&value))
            return static_cast<double>(*integer);
    }
    const auto *integers = std::get_if<std::vector<int64_t>>(&value);
    if (integers && type == KeyType::RealList)
        return std::vector<double>(integers->begin(), integers->end());
    if (integers && integers->empty() && type == KeyType::TextList)
        return std::vector<std::string>{};
    return value;
}

template <typename F>
static bool assign(F &field, const Value &value)
{
    if constexpr (std::is_enum_v<std::remove_pointer_t<F>>) {
        const auto *text = std::get_if<std::string>(&value);
        const auto choice = text ? fromText<std::remove_pointer_t<F>>(*text) : std::nullopt;
        if (choice)
            *field = *choice;
        return choice.has_value();
    } else {
        const auto *right = std::get_if<std::remove_pointer_t<F>>(&value);
        if (right)
            *field = *right;
        return right;
    }
}

/// What every refusal says: key, value, what is allowed.
static tl::unexpected<Error> refusal(const Key &key, const Value &value)
{
    const bool isText = std::holds_alternative<std::string>(value);
    const std::string text = textOf(value);
    std::string hint;
    if (isText && key.type() == KeyType::Choice) {
        const std::vector<std::string> choices(key.choices.begin(), key.choices.end());
        if (const auto nearest = nearestName(text, choices))
            hint = fmt::format(" Did you mean {}?", *nearest);
    }
    const std::string shown = !isText             ? text
                              : isPlainText(text) ? fmt::format("\"{}\"", text)
                                                  : "text that is not UTF-8";
    return fail("{} can't be {}: it takes {}.{}", key.path, shown, allowedText(key), hint);
}

Result<> setValue(RunConfiguration &configuration, const Key &key, const Value &value)
{
    Field field = key.field(configuration);
    if (const auto *text = std::get_if<std::string>(&value); text && key.automatic && *text == kAutomatic) {
        if (auto *integer = std::get_if<int64_t *>(&field))
            **integer = static_cast<int64_t>(*key.automatic);
        else
            *std::get<double *>(field) = *key.automatic;
        return {};
    }
    const Value right = adapted(value, key.type());
    if (!isAllowed(key, right) || !std::visit([&](auto &f) { return assign(f, right); }, field))
        return refusal(key, value);
    return {};
}

Result<> setKey(RunConfiguration &configuration, std::string_view path, std::string_view text)
{
    const auto key = findKey(path);
    if (!key)
        return tl::unexpected(key.error());
    const std::optional<Value> value = parseValue(**key, text);
    return value ? setValue(configuration, **key, *value) : refusal(**key, std::string(text));
}

Result<> setAssignment(RunConfiguration &configuration, std::string_view assignment)
{
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos || equals == 0)
        return fail("\"{}\" is no assignment. Write KEY=VALUE, as in train.steps=100.", assignment);
    return setKey(configuration, trimmed(assignment.substr(0, equals)), assignment.substr(equals + 1));
}

std::vector<std::pair<std::string, std::string>> changedKeys(const RunConfiguration &configuration)
{
    std::vector<std::pair<std::string, std::string>> changed;
    for (const Key &key : keys()) {
        const Value value = valueOf(configuration, key);
        if (value != defaultOf(key))
            changed.emplace_back(key.path, textOf(value));
    }
    return changed;
}

} // namespace shardscope::config
