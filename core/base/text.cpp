// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <vector>

namespace shardscope {

/// Three significant digits: 9.99, 99.9, 999.
static std::string threeDigits(double value)
{
    const double size = std::abs(value);
    return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string formatBytes(int64_t bytes)
{
    static constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (std::abs(bytes) < 1024)
        return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes) / 1024;
    size_t unit = 0;
    for (; std::abs(value) >= 999.5 && unit + 1 < std::size(units); ++unit)
        value /= 1024;
    return fmt::format("{} {}", threeDigits(value), units[unit]);
}

std::string formatDuration(int64_t nanoseconds)
{
    const double ns = static_cast<double>(nanoseconds);
    const double size = std::abs(ns);
    if (size < 999.5)
        return fmt::format("{} ns", nanoseconds);
    if (size < 999.5e3)
        return fmt::format("{} µs", threeDigits(ns / 1e3));
    if (size < 999.5e6)
        return fmt::format("{} ms", threeDigits(ns / 1e6));
    const int64_t seconds = std::llround(ns / 1e9);
    if (std::abs(seconds) < 60)
        return fmt::format("{} s", threeDigits(ns / 1e9));
    if (std::abs(seconds) < 3600)
        return fmt::format("{} min {:02} s", seconds / 60, std::abs(seconds % 60));
    return fmt::format("{} h {:02} min", seconds / 3600, std::abs(seconds % 3600) / 60);
}

std::string formatCount(double count)
{
    static constexpr const char *units[] = {" k", " M", " B", " T"};
    if (std::abs(count) < 999.5)
        return std::floor(count) == count ? fmt::format("{:.0f}", count) : threeDigits(count);
    double value = count / 1000;
    size_t unit = 0;
    for (; std::abs(value) >= 999.5 && unit + 1 < std::size(units); ++unit)
        value /= 1000;
    return threeDigits(value) + units[unit];
}

std::string formatDouble(double value)
{
    return fmt::format("{}", value);
}

static size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row.back();
}

std::optional<std::string> nearestName(std::string_view word, std::span<const std::string> candidates)
{
    std::optional<std::string> best;
    size_t bestDistance = std::max<size_t>(2, word.size() / 3) + 1;
    for (const std::string &candidate : candidates) {
        // "steps" for "train.steps": a section that was forgotten costs nothing.
        const size_t dot = candidate.rfind('.');
        size_t distance = editDistance(word, candidate);
        if (dot != std::string::npos && word.find('.') == std::string_view::npos)
            distance = std::min(distance, editDistance(word, std::string_view(candidate).substr(dot + 1)));
        if (distance < bestDistance) {
            bestDistance = distance;
            best = candidate;
        }
    }
    return best;
}

} // namespace shardscope
