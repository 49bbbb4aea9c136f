// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace shardscope::analysis {

/// The two-sided p of Mann and Whitney's U for two samples of no assumed distribution: how likely ranks at least as
/// uneven as these are, where both come from one distribution. Normal approximation with corrections for ties and
/// continuity (Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 4.1), as scipy.stats.mannwhitneyu with
/// method="asymptotic"; good from about 8 values each. 1 where a sample is empty or all values are equal.
double mannWhitneyP(std::span<const double> a, std::span<const double> b);

/// Linear interpolation between the order statistics, as numpy.quantile. `sorted` is ascending and not empty.
double quantile(std::span<const double> sorted, double share);

} // namespace shardscope::analysis
