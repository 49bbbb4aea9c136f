// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/time_range.h"

#include <cstdint>
#include <vector>

namespace shardscope::ui::timeline {

/// The ruler's marks: round times (1, 2 or 5 × a power of ten), at least minSpacingPx apart.
struct Ticks
{
    int64_t spacingNs = 1;
    std::vector<int64_t> timesNs; ///< those in the visible range, ascending
};

Ticks ticksFor(TimeRange visible, double widthPx, double minSpacingPx);

/// A step on the ruler, in pixels.
struct StepBand
{
    double left = 0;
    double right = 0;
    double numberPx = 0; ///< what its number takes, with margins
};

/// Which of the bands (ascending) have their number written at their left: all with room for it, and now and then one
/// of those that are narrower, where it hides no other. No number reaches beyond endPx.
std::vector<size_t> numberedBands(const std::vector<StepBand> &bands, double endPx);

} // namespace shardscope::ui::timeline
