// SPDX-License-Identifier: Apache-2.0
#include "core/config/configuration_file.h"

#include "core/base/file.h"
#include "core/config/registry.h"

#include <nlohmann/json.hpp>

namespace shardscope::config {

using Json = nlohmann::ordered_json;

Json toJson(const RunConfiguration &configuration)
{
    Json json = Json::object();
    for (const Key &key : keys()) {
        Json &place = json[std::string(key.section())][std::string(key.name())];
        std::visit([&](const auto &value) { place = value; }, valueOf(configuration, key));
    }
    return json;
}

template <typename T>
static std::optional<Value> listFrom(const Json &json)
{
    std::vector<T> list;
    for (const Json &element : json) {
        const bool isRight = std::is_same_v<T, std::string> ? element.is_string()
                             : std::is_same_v<T, double>    ? element.is_number()
                                                            : element.is_number_integer();
        if (!isRight)
            return std::nullopt;
        list.push_back(element.get<T>());
    }
    return list;
}

static std::optional<Value> valueFrom(const Json &json)
{
    if (json.is_boolean())
        return json.get<bool>();
    if (json.is_number_integer())
        return json.get<int64_t>();
    if (json.is_number())
        return json.get<double>();
    if (json.is_string())
        return json.get<std::string>();
    if (!json.is_array())
        return std::nullopt;
    for (const auto &list : {listFrom<int64_t>(json), listFrom<double>(json), listFrom<std::string>(json)}) {
        if (list)
            return list;
    }
    return std::nullopt;
}

static Result<> setFromJson(RunConfiguration &configuration, const std::string &path, const Json &json)
{
    const auto key = findKey(path);
    if (!key)
        return tl::unexpected(key.error());
    const std::optional<Value> value = valueFrom(json);
    if (!value)
        return fail("{} can't be {}: it takes {}.", path, json.dump(-1, ' ', false, Json::error_handler_t::replace),
                    allowedText(**key));
    return setValue(configuration, **key, *value);
}

Result<> applyJson(RunConfiguration &configuration, const Json &json, std::string_view source)
{
    if (!json.is_object())
        return fail("{}: a configuration is an object of sections.", source);
    std::vector<std::string> mistakes;
    for (const auto &[section, keysOfIt] : json.items()) {
        if (!keysOfIt.is_object()) {
            mistakes.push_back(fmt::format("{}: {} must be a section with keys.", source, section));
            continue;
        }
        for (const auto &[name, value] : keysOfIt.items()) {
            const auto set = setFromJson(configuration, section + "." + name, value);
            if (!set)
                mistakes.push_back(fmt::format("{}: {}", source, set.error().text));
        }
    }
    if (!mistakes.empty())
        return fail("{}", fmt::join(mistakes, "\n"));
    return {};
}

Result<> applyFile(RunConfiguration &configuration, const std::filesystem::path &path)
{
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return fail("{} is a folder. A configuration is a TOML file.", path.string());
    const auto text = readTextFile(path);
    if (!text)
        return tl::unexpected(text.error());
    if (path.extension() != ".json")
        return applyToml(configuration, *text, path.string());
    try {
        return applyJson(configuration, Json::parse(*text), path.string());
    } catch (const Json::exception &e) {
        return fail("{}: {}", path.string(), e.what());
    }
}

Result<RunConfiguration> readConfiguration(const std::filesystem::path &path)
{
    RunConfiguration configuration;
    if (const auto applied = applyFile(configuration, path); !applied)
        return tl::unexpected(applied.error());
    return configuration;
}

} // namespace shardscope::config
