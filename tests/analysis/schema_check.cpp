// SPDX-License-Identifier: Apache-2.0
#include "schema_check.h"

#include <algorithm>
#include <set>

namespace shardscope::test {
namespace {

using nlohmann::json;

class Checker
{
public:
    explicit Checker(const json &root)
        : m_root(root)
    {
    }

    void check(const json &schema, const json &value, const std::string &where)
    {
        for (const auto &[word, rule] : schema.items()) {
            if (!isKnown(word))
                report(where, "the schema has the unknown word " + word);
        }
        if (schema.contains("$ref"))
            check(resolve(schema["$ref"].get<std::string>()), value, where);
        if (schema.contains("type") && !hasType(schema["type"], value)) {
            report(where, "is not of type " + schema["type"].dump());
            return;
        }
        if (schema.contains("const") && schema["const"] != value)
            report(where, "is not " + schema["const"].dump());
        if (schema.contains("enum") &&
            std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
            report(where, "is none of " + schema["enum"].dump());
        if (schema.contains("anyOf") && !matchesAny(schema["anyOf"], value))
            report(where, "matches nothing of anyOf");
        checkRange(schema, value, where);
        checkParts(schema, value, where);
    }

    std::vector<std::string> errors;

private:
    static bool isKnown(const std::string &word)
    {
        static const std::set<std::string> kWords = {"$schema",
                                                     "$comment",
                                                     "$defs",
                                                     "$ref",
                                                     "title",
                                                     "description",
                                                     "type",
                                                     "properties",
                                                     "required",
                                                     "items",
                                                     "additionalProperties",
                                                     "enum",
                                                     "const",
                                                     "minimum",
                                                     "maximum",
                                                     "anyOf"};
        return kWords.count(word) > 0;
    }

    static bool isType(const std::string &type, const json &value)
    {
        if (type == "number")
            return value.is_number();
        return type == (value.is_number_integer() ? "integer" : std::string(value.type_name()));
    }

    static bool hasType(const json &type, const json &value)
    {
        if (type.is_string())
            return isType(type, value);
        return std::any_of(type.begin(), type.end(), [&](const json &one) { return isType(one, value); });
    }

    const json &resolve(const std::string &reference) const
    {
        return m_root.at(json::json_pointer(reference.substr(1)));
    }

    bool matchesAny(const json &schemas, const json &value) const
    {
        return std::any_of(schemas.begin(), schemas.end(), [&](const json &schema) {
            Checker inner(m_root);
            inner.check(schema, value, "");
            return inner.errors.empty();
        });
    }

    void checkRange(const json &schema, const json &value, const std::string &where)
    {
        if (!value.is_number())
            return;
        if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>())
            report(where, "is below the minimum");
        if (schema.contains("maximum") && value.get<double>() > schema["maximum"].get<double>())
            report(where, "is above the maximum");
    }

    void checkParts(const json &schema, const json &value, const std::string &where)
    {
        if (value.is_object() && schema.contains("properties")) {
            for (const json &key : schema["required"]) {
                if (!value.contains(key.get<std::string>()))
                    report(where, "lacks " + key.dump());
            }
            // Keys may be added to the format, but not without being added to its schema.
            for (const auto &[key, part] : value.items()) {
                if (!schema["properties"].contains(key))
                    report(where, "has " + key + ", which the schema does not");
                else
                    check(schema["properties"][key], part, where + "/" + key);
            }
        }
        if (value.is_array() && schema.contains("items")) {
            for (size_t i = 0; i < value.size(); ++i)
                check(schema["items"], value[i], where + "/" + std::to_string(i));
        }
    }

    void report(const std::string &where, const std::string &what)
    {
        errors.push_back((where.empty() ? "/" : where) + " " + what);
    }

    const json &m_root;
};

} // namespace

std::vector<std::string> schemaErrors(const json &schema, const json &value)
{
    Checker checker(schema);
    checker.check(schema, value, "");
    return checker.errors;
}

} // namespace shardscope::test
