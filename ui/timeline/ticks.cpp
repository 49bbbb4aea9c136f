// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/ticks.h"

#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace shardscope::ui::timeline {

Ticks ticksFor(TimeRange visible, double widthPx, double minSpacingPx)
{
    Ticks ticks;
    if (visible.isEmpty() || widthPx < 1)
        return ticks;
    const double wanted = static_cast<double>(visible.durationNs()) * minSpacingPx / widthPx;
    int64_t power = 1;
    constexpr int64_t kMaxPower = 1'000'000'000'000'000;
    while (static_cast<double>(power) * 10 <= wanted && power < kMaxPower)
        power *= 10;
    ticks.spacingNs = power * 10;
    for (const int64_t factor : {1, 2, 5}) {
        if (static_cast<double>(power * factor) >= wanted) {
            ticks.spacingNs = power * factor;
            break;
        }
    }
    int64_t first = visible.startNs / ticks.spacingNs * ticks.spacingNs;
    if (first < visible.startNs)
        first += ticks.spacingNs;
    for (int64_t time = first; time < visible.endNs; time += ticks.spacingNs)
        ticks.timesNs.push_back(time);
    return ticks;
}

std::string tickText(int64_t timeNs, int64_t spacingNs)
{
    if (timeNs == 0)
        return "0";
    struct Unit
    {
        int64_t ns;
        int digits;
        const char *text;
    };
    static constexpr Unit kUnits[] = {{1'000'000'000, 9, "s"}, {1'000'000, 6, "ms"}, {1000, 3, "µs"}, {1, 0, "ns"}};
    const int64_t size = std::abs(timeNs);
    for (const Unit &unit : kUnits) {
        if (size < unit.ns)
            continue;
        int digits = unit.digits;
        for (int64_t step = spacingNs; digits > 0 && step % 10 == 0; step /= 10)
            --digits;
        const std::string sign = timeNs < 0 ? "-" : "";
        if (digits == 0)
            return fmt::format("{}{} {}", sign, size / unit.ns, unit.text);
        const std::string fraction = fmt::format("{:0{}}", size % unit.ns, unit.digits).substr(0, size_t(digits));
        return fmt::format("{}{}.{} {}", sign, size / unit.ns, fraction, unit.text);
    }
    return fmt::format("{} ns", timeNs);
}

} // namespace shardscope::ui::timeline
