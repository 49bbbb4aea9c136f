// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/hf_json.h"

#include <cmath>

namespace shardscope::shapes {

static constexpr size_t kShownBytes = 60;

static std::string shown(const nlohmann::json &value)
{
    std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > kShownBytes)
        text = text.substr(0, kShownBytes) + "…";
    return text;
}

const nlohmann::json *HfFields::find(const char *name) const
{
    const auto found = m_object.find(name);
    return found == m_object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<int64_t> HfFields::count(const char *name, int64_t most) const
{
    const nlohmann::json *value = find(name);
    if (!value)
        return std::nullopt;
    const bool isWhole = value->is_number_integer() &&
                         (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(most));
    if (!isWhole || value->get<int64_t>() < 1 || value->get<int64_t>() > most) {
        problem("{} = {} must be a whole number from 1 to {}.", name, shown(*value), most);
        return std::nullopt;
    }
    return value->get<int64_t>();
}

int64_t HfFields::requiredCount(const char *name, int64_t most) const
{
    if (!find(name)) {
        problem("{} is missing.", name);
        return 0;
    }
    return count(name, most).value_or(0);
}

std::optional<double> HfFields::number(const char *name) const
{
    const nlohmann::json *value = find(name);
    if (!value)
        return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
        problem("{} = {} must be a number.", name, shown(*value));
        return std::nullopt;
    }
    return value->get<double>();
}

std::optional<bool> HfFields::flag(const char *name) const
{
    const nlohmann::json *value = find(name);
    if (!value)
        return std::nullopt;
    if (!value->is_boolean()) {
        problem("{} = {} must be true or false.", name, shown(*value));
        return std::nullopt;
    }
    return value->get<bool>();
}

std::optional<std::string> HfFields::text(const char *name) const
{
    const nlohmann::json *value = find(name);
    if (!value)
        return std::nullopt;
    if (!value->is_string()) {
        problem("{} = {} must be a text.", name, shown(*value));
        return std::nullopt;
    }
    return value->get<std::string>();
}

} // namespace shardscope::shapes
