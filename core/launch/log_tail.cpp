// SPDX-License-Identifier: Apache-2.0
#include "core/launch/log_tail.h"

#include <algorithm>
#include <fstream>

namespace shardscope::launch {

std::string logTail(const std::filesystem::path &log, int lines)
{
    constexpr std::streamoff kMostBytes = 8192;
    std::ifstream in(log, std::ios::binary | std::ios::ate);
    if (!in)
        return {};
    const std::streamoff size = in.tellg();
    std::string text(static_cast<size_t>(std::min(size, kMostBytes)), '\0');
    in.seekg(size - static_cast<std::streamoff>(text.size()));
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.pop_back();
    size_t start = text.size();
    for (int line = 0; line < lines && start != std::string::npos; ++line)
        start = start == 0 ? std::string::npos : text.rfind('\n', start - 1);
    if (start != std::string::npos)
        return text.substr(start + 1);
    // The first line may be cut where the file is longer than what was read.
    const size_t newline = text.find('\n');
    return size > kMostBytes && newline != std::string::npos ? text.substr(newline + 1) : text;
}

} // namespace shardscope::launch
