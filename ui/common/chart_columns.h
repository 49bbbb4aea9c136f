// SPDX-License-Identifier: GPL-3.0-or-later
// Which points of a stack to draw where there are more of them than pixels.
#pragma once

#include <cstddef>
#include <vector>

namespace shardscope::ui {

/// What a chart draws of its points: indices into them, and where each stands. thinned: a column of pixels stands for
/// several points.
struct DrawnPoints
{
    std::vector<size_t> indices; ///< ascending
    std::vector<double> x;
    bool thinned = false;
};

/// Points of [lower, upper] and a neighbour on each side. Of those in one column (leastWidth to twice that wide, at the
/// same places while a live chart grows) only the highest by `height` stays, at the column's left edge. It stays whole,
/// so that what is stacked there is of one moment and its parts still sum to its height. x ascends; height has as many
/// values; a point of NaN is a gap, which stays; a leastWidth of 0 thins nothing.
DrawnPoints drawnPoints(const std::vector<double> &x, const std::vector<double> &height, double lower, double upper,
                        double leastWidth);

} // namespace shardscope::ui
