// SPDX-License-Identifier: Apache-2.0
// What a change of a running job's configuration did, from the recording: the steps before it against those after it.
#pragma once

#include "core/base/result.h"
#include "profiler/store/recording.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::analysis {

/// Steps left out after each change of the configuration: buffers are made anew, and the allocator settles.
inline constexpr int64_t kSettlingSteps = 3;
/// Steps that a side needs before anything is said of it, and that it has at most: the nearest ones.
inline constexpr size_t kStepsNeeded = 10;
inline constexpr size_t kStepsAtMost = 100;
/// Below it a difference counts: mannWhitneyP() of the two sides.
inline constexpr double kSignificance = 0.01;

/// One figure of the steps of one side.
struct Side
{
    size_t steps = 0;
    double median = 0;
    double lower = 0; ///< quartiles
    double upper = 0;
};

/// A figure before and after. Empty sides: too few steps (yet), or not measured.
struct Effect
{
    std::optional<Side> before;
    std::optional<Side> after;
    std::optional<double> p; ///< two-sided; where both sides are there
    bool significant() const { return p && *p < kSignificance; }
};

struct ChangeEffect
{
    int64_t attempt = 1;
    int64_t firstStep = 0;   ///< the first step under the change
    std::string changedJson; ///< {key: {from, to}}
    std::string origin;
    size_t stepsAfter = 0; ///< that there are so far, the settling ones left out
    Effect stepNs;         ///< of the slowest rank
    Effect peakBytes;      ///< of the fullest rank
    Effect exposedNs;      ///< communication that nothing hides, the mean of the ranks
    /// The figures of each step, for sql(): number, step_ns, peak_bytes, exposed_ns.
    std::string sql;
};

/// The last change of the recording; nothing where there was none. `cancel` is looked at between reads.
Result<std::optional<ChangeEffect>> lastChangeEffect(const store::Recording &recording,
                                                     const store::CancelToken &cancel = {});

} // namespace shardscope::analysis
