// SPDX-License-Identifier: Apache-2.0
#include "core/config/configuration_file.h"

#include "core/base/file.h"
#include "core/config/registry.h"
#include "core/config/unit_rules.h"

#include <nlohmann/json.hpp>

namespace shardscope::config {

using Json = nlohmann::ordered_json;

static constexpr const char *kRules = "unit";

static Json toJson(const UnitRule &rule)
{
    Json json = Json::object();
    for (const auto &[name, value] : valuesOf(rule))
        std::visit([&](const auto &each) { json[std::string(name)] = each; }, value);
    return json;
}

Json toJson(const RunConfiguration &configuration)
{
    Json json = Json::object();
    for (const Key &key : keys()) {
        Json &place = json[std::string(key.section())][std::string(key.name())];
        std::visit([&](const auto &value) { place = value; }, valueOf(configuration, key));
    }
    json[kRules] = Json::array();
    for (const UnitRule &rule : configuration.units)
        json[kRules].push_back(toJson(rule));
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

/// The rules of a configuration, in place of those before; each mistake as a line of its own.
static void setRulesFromJson(RunConfiguration &configuration, const Json &json, std::string_view source,
                             std::vector<std::string> &mistakes)
{
    configuration.units.clear();
    for (size_t index = 0; index < json.size(); ++index) {
        const auto add = [&](const std::string &text) {
            mistakes.push_back(fmt::format("{}: unit {}: {}", source, index + 1, text));
        };
        if (!json[index].is_object()) {
            add("A rule is an object with keys.");
            continue;
        }
        UnitRule &rule = configuration.units.emplace_back();
        for (const auto &[name, each] : json[index].items()) {
            const auto key = findRuleKey(name);
            const std::optional<Value> value = valueFrom(each);
            if (!key)
                add(key.error().text);
            else if (!value)
                add(fmt::format("{} can't be {}.", name, each.dump(-1, ' ', false, Json::error_handler_t::replace)));
            else if (const auto set = setRuleValue(rule, **key, *value); !set)
                add(set.error().text);
        }
    }
}

Result<> applyJson(RunConfiguration &configuration, const Json &json, std::string_view source)
{
    if (!json.is_object())
        return fail("{}: a configuration is an object of sections.", source);
    std::vector<std::string> mistakes;
    for (const auto &[section, keysOfIt] : json.items()) {
        if (section == kRules ? !keysOfIt.is_array() : !keysOfIt.is_object()) {
            mistakes.push_back(fmt::format("{}: {} must be a {}.", source, section,
                                           section == kRules ? "list of rules" : "section with keys"));
            continue;
        }
        if (section == kRules) {
            setRulesFromJson(configuration, keysOfIt, source, mistakes);
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

Result<> writeConfiguration(const std::filesystem::path &path, const Json &json)
{
    return writeFileAtomically(path, json.dump(2) + "\n");
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
