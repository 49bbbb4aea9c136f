// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_columns.h"

#include <algorithm>
#include <cmath>

namespace shardscope::ui {

DrawnPoints drawnPoints(const std::vector<double> &x, const std::vector<double> &height, double lower, double upper,
                        double leastWidth)
{
    auto from = static_cast<size_t>(std::lower_bound(x.begin(), x.end(), lower) - x.begin());
    auto to = static_cast<size_t>(std::upper_bound(x.begin(), x.end(), upper) - x.begin());
    from -= from > 0;
    to = std::min(to + 1, x.size());
    // A power of two of the unit of x, so that columns keep their places while the view grows with a live run.
    const double width = leastWidth > 0 ? std::exp2(std::ceil(std::log2(leastWidth))) : 0;
    const auto columnOf = [&](size_t i) { return std::floor(x[i] / width); };
    DrawnPoints drawn;
    for (size_t i = from; i < to;) {
        const size_t first = i;
        size_t highest = i++;
        const bool gap = std::isnan(height[first]);
        for (; width > 0 && i < to && columnOf(i) == columnOf(first) && !gap && !std::isnan(height[i]); ++i) {
            if (height[i] > height[highest])
                highest = i;
        }
        const bool several = i - first > 1;
        drawn.indices.push_back(highest);
        // What follows a gap in its column stays right of it.
        const double least = drawn.x.empty() ? -HUGE_VAL : drawn.x.back();
        drawn.x.push_back(several ? std::max(columnOf(first) * width, least) : x[first]);
        drawn.thinned = drawn.thinned || several;
    }
    if (drawn.thinned && drawn.x.back() < x[to - 1]) { // up to where the data goes
        drawn.indices.push_back(drawn.indices.back());
        drawn.x.push_back(x[to - 1]);
    }
    return drawn;
}

} // namespace shardscope::ui
