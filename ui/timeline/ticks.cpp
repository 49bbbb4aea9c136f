// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/ticks.h"

#include <cmath>

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

std::vector<size_t> numberedBands(const std::vector<StepBand> &bands, double endPx)
{
    std::vector<size_t> numbered;
    const auto isNarrow = [&bands](size_t i) { return bands[i].right - bands[i].left < bands[i].numberPx; };
    double freeFrom = -HUGE_VAL;
    for (size_t i = 0; i < bands.size(); ++i) {
        const StepBand &band = bands[i];
        if (band.left + band.numberPx > endPx)
            continue;
        if (band.left < freeFrom) {
            if (isNarrow(i) || !isNarrow(numbered.back()))
                continue;
            numbered.pop_back(); // it reaches into a band with room for its own number
        }
        numbered.push_back(i);
        freeFrom = band.left + band.numberPx * (isNarrow(i) ? 2 : 1);
    }
    return numbered;
}

} // namespace shardscope::ui::timeline
