// SPDX-License-Identifier: Apache-2.0
// Tolerant reading of JSON objects: a key that is missing, null or of another type changes nothing.
#pragma once

#include "core/base/result.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::run {

template <typename T>
bool fits(const nlohmann::json &value)
{
    if constexpr (std::is_same_v<T, bool>)
        return value.is_boolean();
    else if constexpr (std::is_integral_v<T>)
        return value.is_number_integer();
    else if constexpr (std::is_floating_point_v<T>)
        return value.is_number();
    else
        return value.is_string();
}

template <typename T>
void take(const nlohmann::json &object, const char *key, T &target)
{
    const auto found = object.find(key);
    if (found != object.end() && fits<T>(*found))
        target = found->template get<T>();
}

template <typename T>
void take(const nlohmann::json &object, const char *key, std::optional<T> &target)
{
    const auto found = object.find(key);
    if (found != object.end() && fits<T>(*found))
        target = found->template get<T>();
}

/// null for nothing.
template <typename T>
nlohmann::json orNull(const std::optional<T> &value)
{
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

/// JSON in one line. Bytes that are no UTF-8 (in paths, in logs) become U+FFFD instead of an exception.
inline std::string dump(const nlohmann::json &json, int indent = -1)
{
    return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The object of a text; `what` names it in the error.
inline Result<nlohmann::json> parseObject(std::string_view text, std::string_view what)
{
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded() || !json.is_object())
        return fail("{} is no JSON object.", what);
    return json;
}

} // namespace shardscope::run
