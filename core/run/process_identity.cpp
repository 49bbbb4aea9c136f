// SPDX-License-Identifier: Apache-2.0
#include "core/run/process_identity.h"

#include "core/base/file.h"

#include <charconv>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace shardscope::run {

/// /proc/<pid>/stat from its third field (the state) on; empty where there is no such process, or a zombie.
static std::vector<std::string> statFields(int64_t pid)
{
    if (pid <= 0)
        return {};
    const auto text = readTextFile(fmt::format("/proc/{}/stat", pid));
    // The name in parentheses may hold spaces and parentheses itself: fields are counted from its last one.
    const size_t close = text ? text->rfind(')') : std::string::npos;
    if (close == std::string::npos)
        return {};
    std::istringstream words(text->substr(close + 1));
    std::vector<std::string> fields;
    for (std::string word; words >> word;)
        fields.push_back(word);
    const bool gone = fields.empty() || fields[0] == "Z" || fields[0] == "X";
    return gone ? std::vector<std::string>() : fields;
}

/// By the numbers of proc(5), which count from 1.
static std::optional<int64_t> numberOf(const std::vector<std::string> &fields, size_t number)
{
    const size_t index = number - 3;
    int64_t value = 0;
    if (index >= fields.size() ||
        std::from_chars(fields[index].data(), fields[index].data() + fields[index].size(), value).ec != std::errc{})
        return std::nullopt;
    return value;
}

std::optional<int64_t> processStartTicks(int64_t pid)
{
    return numberOf(statFields(pid), 22);
}

std::optional<ProcessUse> processUse(int64_t pid)
{
    const std::vector<std::string> fields = statFields(pid);
    const auto user = numberOf(fields, 14);
    const auto system = numberOf(fields, 15);
    if (!user || !system)
        return std::nullopt;
    const bool stopped = fields[0] == "T" || fields[0] == "t";
    return ProcessUse{stopped, (*user + *system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK))};
}

std::string bootId()
{
    auto text = readTextFile("/proc/sys/kernel/random/boot_id");
    if (!text)
        return {};
    while (!text->empty() && text->back() == '\n')
        text->pop_back();
    return *text;
}

} // namespace shardscope::run
