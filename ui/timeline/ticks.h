// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/time_range.h"

#include <string>
#include <vector>

namespace shardscope::ui::timeline {

/// The ruler's marks: round times (1, 2 or 5 × a power of ten), at least minSpacingPx apart.
struct Ticks
{
    int64_t spacingNs = 1;
    std::vector<int64_t> timesNs; ///< those in the visible range, ascending
};

Ticks ticksFor(TimeRange visible, double widthPx, double minSpacingPx);

/// A time after the origin with as many digits as the spacing needs: "1.250 s", "12.3405 ms". The unit follows the
/// time's own size, so that neighbours read alike; "0" at the origin.
std::string tickText(int64_t timeNs, int64_t spacingNs);

} // namespace shardscope::ui::timeline
