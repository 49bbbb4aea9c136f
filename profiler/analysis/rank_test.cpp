// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/rank_test.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardscope::analysis {

double mannWhitneyP(std::span<const double> a, std::span<const double> b)
{
    struct Ranked
    {
        double value;
        bool ofA;
    };
    std::vector<Ranked> all;
    for (const double value : a)
        all.push_back({value, true});
    for (const double value : b)
        all.push_back({value, false});
    std::ranges::sort(all, {}, &Ranked::value);
    double rankSumOfA = 0;
    double ties = 0; // Σ t³ − t
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
        while (end < all.size() && all[end].value == all[begin].value)
            ++end;
        const auto count = static_cast<double>(end - begin);
        const double rank = (static_cast<double>(begin + end) + 1) / 2; // the mean of begin + 1 … end
        for (size_t i = begin; i < end; ++i)
            rankSumOfA += all[i].ofA ? rank : 0;
        ties += count * count * count - count;
    }
    const auto n = static_cast<double>(a.size());
    const auto m = static_cast<double>(b.size());
    if (n == 0 || m == 0)
        return 1;
    const double u = rankSumOfA - n * (n + 1) / 2;
    const double variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)));
    if (variance <= 0)
        return 1;
    const double distance = std::max(0.0, std::abs(u - n * m / 2) - 0.5);
    return std::erfc(distance / std::sqrt(2 * variance));
}

double quantile(std::span<const double> sorted, double share)
{
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

} // namespace shardscope::analysis
