// SPDX-License-Identifier: Apache-2.0
// Fields of config.json by type, with a message for each that is not what it must be.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::shapes {

/// Reads fields of one JSON object and collects what is wrong with them. null counts as absent, as it does there.
class HfFields
{
public:
    HfFields(const nlohmann::json &object, std::vector<std::string> &problems, std::string prefix = {})
        : m_object(object)
        , m_problems(problems)
        , m_prefix(std::move(prefix))
    {
    }

    const nlohmann::json *find(const char *name) const;
    bool isPresent(const char *name) const { return m_object.contains(name); } ///< null too
    /// 1 … most.
    std::optional<int64_t> count(const char *name, int64_t most) const;
    int64_t requiredCount(const char *name, int64_t most) const; ///< 0 and a problem where it is absent
    std::optional<double> number(const char *name) const;
    std::optional<bool> flag(const char *name) const;
    std::optional<std::string> text(const char *name) const;

    template <typename... Args>
    void problem(fmt::format_string<Args...> format, Args &&...args) const
    {
        m_problems.push_back(m_prefix + fmt::format(format, std::forward<Args>(args)...));
    }

private:
    const nlohmann::json &m_object;
    std::vector<std::string> &m_problems;
    std::string m_prefix;
};

} // namespace shardscope::shapes
