// SPDX-License-Identifier: Apache-2.0
#include "core/config/configuration_file.h"
#include "core/config/registry.h"
#include "core/config/unit_rules.h"

#include <algorithm>
#include <toml++/toml.h>

namespace shardscope::config {

namespace {

constexpr std::string_view kRules = "unit";

/// Walks a document and collects every mistake with its place.
class TomlReader
{
public:
    TomlReader(RunConfiguration &configuration, std::string_view source)
        : m_configuration(configuration)
        , m_source(source)
    {
    }

    void readTable(const toml::table &table, const std::string &prefix);
    Result<> result();

private:
    struct Mistake
    {
        toml::source_position position;
        std::string text;
    };

    void readValue(const toml::key &name, const toml::node &node, const std::string &path);
    void readRules(const toml::key &name, const toml::node &node);
    void readRule(const toml::table &table);
    void add(const toml::source_region &place, std::string text)
    {
        m_mistakes.push_back({place.begin, std::move(text)});
    }

    RunConfiguration &m_configuration;
    std::string_view m_source;
    std::vector<Mistake> m_mistakes;
};

template <typename T>
std::optional<Value> listFrom(const toml::array &array)
{
    std::vector<T> list;
    for (const toml::node &element : array) {
        // Exact types: value<double>() would take integers, but value<int64_t>() would take 1.0 too.
        const auto exact = element.value_exact<T>();
        if (exact)
            list.push_back(*exact);
        else if (std::is_same_v<T, double> && element.is_integer())
            list.push_back(*element.value<T>());
        else
            return std::nullopt;
    }
    return list;
}

std::optional<Value> valueFrom(const toml::node &node)
{
    if (const auto boolean = node.value_exact<bool>())
        return *boolean;
    if (const auto integer = node.value_exact<int64_t>())
        return *integer;
    if (const auto real = node.value_exact<double>())
        return *real;
    if (auto text = node.value_exact<std::string>())
        return std::move(*text);
    if (const toml::array *array = node.as_array()) {
        for (const auto &list : {listFrom<int64_t>(*array), listFrom<double>(*array), listFrom<std::string>(*array)}) {
            if (list)
                return list;
        }
    }
    return std::nullopt;
}

bool isSection(std::string_view name)
{
    return std::ranges::find(keys(), name, &Key::section) != keys().end();
}

void TomlReader::readTable(const toml::table &table, const std::string &prefix)
{
    for (const auto &[name, node] : table) {
        const std::string path = prefix + std::string(name.str());
        const toml::table *inner = node.as_table();
        if (path == kRules)
            readRules(name, node);
        else if (inner && inner->empty() && !isSection(path))
            add(name.source(), fmt::format("Unknown section [{}].", path));
        else if (inner)
            readTable(*inner, path + ".");
        else
            readValue(name, node, path);
    }
}

/// A list of rules takes the place of the one before: the last match wins, so lists don't mix.
void TomlReader::readRules(const toml::key &name, const toml::node &node)
{
    const toml::array *rules = node.as_array();
    const bool isList = rules && std::ranges::all_of(*rules, [](const toml::node &rule) { return rule.is_table(); });
    if (!isList)
        return add(name.source(), "unit is a list of rules: write [[unit]].");
    m_configuration.units.clear();
    for (const toml::node &rule : *rules)
        readRule(*rule.as_table());
}

void TomlReader::readRule(const toml::table &table)
{
    if (table.empty())
        return add(table.source(), "This [[unit]] says nothing: give it a match.");
    UnitRule rule;
    for (const auto &[name, node] : table) {
        const auto key = findRuleKey(name.str());
        const std::optional<Value> value = valueFrom(node);
        if (!key)
            add(name.source(), key.error().text);
        else if (!value)
            add(node.source(), fmt::format("{} can't be a table or a time.", name.str()));
        else if (const auto set = setRuleValue(rule, **key, *value); !set)
            add(node.source(), set.error().text);
    }
    m_configuration.units.push_back(std::move(rule));
}

void TomlReader::readValue(const toml::key &name, const toml::node &node, const std::string &path)
{
    const auto key = findKey(path);
    if (!key)
        return add(name.source(), key.error().text);
    const std::optional<Value> value = valueFrom(node);
    if (!value)
        return add(node.source(), fmt::format("{} takes {}.", path, allowedText(**key)));
    if (const auto set = setValue(m_configuration, **key, *value); !set)
        add(node.source(), set.error().text);
}

Result<> TomlReader::result()
{
    if (m_mistakes.empty())
        return {};
    std::ranges::stable_sort(m_mistakes, {},
                             [](const Mistake &m) { return std::pair(m.position.line, m.position.column); });
    std::vector<std::string> lines;
    for (const auto &[position, text] : m_mistakes)
        lines.push_back(fmt::format("{}:{}:{}: {}", m_source, position.line, position.column, text));
    return fail("{}", fmt::join(lines, "\n"));
}

} // namespace

Result<> applyToml(RunConfiguration &configuration, std::string_view text, std::string_view source)
{
    try {
        const toml::table document = toml::parse(text, source);
        TomlReader reader(configuration, source);
        reader.readTable(document, "");
        return reader.result();
    } catch (const toml::parse_error &e) {
        const toml::source_position place = e.source().begin;
        return fail("{}:{}:{}: {}", source, place.line, place.column, e.description());
    }
}

} // namespace shardscope::config
