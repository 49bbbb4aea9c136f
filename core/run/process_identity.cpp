// SPDX-License-Identifier: Apache-2.0
#include "core/run/process_identity.h"

#include "core/base/file.h"

#include <sstream>

namespace shardscope::run {

std::optional<int64_t> processStartTicks(int64_t pid)
{
    if (pid <= 0)
        return std::nullopt;
    const auto text = readTextFile(fmt::format("/proc/{}/stat", pid));
    if (!text)
        return std::nullopt;
    // The name in parentheses may hold spaces and parentheses itself: fields are counted from its last one.
    const size_t close = text->rfind(')');
    if (close == std::string::npos)
        return std::nullopt;
    std::istringstream fields(text->substr(close + 1));
    fields.imbue(std::locale::classic());
    std::string state;
    fields >> state;
    if (state == "Z" || state == "X")
        return std::nullopt;
    int64_t value = 0;
    for (int field = 4; field <= 22; ++field)
        fields >> value;
    return fields ? std::optional(value) : std::nullopt;
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
