// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/control/rank_messages.h"
#include "core/run/run_status.h"

#include <cstdint>
#include <map>
#include <vector>

namespace shardscope::launch {

/// Makes the run's figures of what its ranks say of each step.
class StepMeter
{
public:
    explicit StepMeter(int ranks);

    /// True where this was the last rank to report the step: `status` has its figures then. Loss is rank 0's (it is
    /// global); step time is the slowest rank's; tokens are summed; memory is of the rank that holds most; the exposed
    /// share is the mean over the ranks' time, null where a rank did not measure it.
    bool add(int rank, const control::StepMessage &message, run::RunStatus &status);

    /// Takes the figures that a rank knows once its recording is closed, and puts them in `status` where all ranks' are
    /// there.
    void addLast(int rank, const control::StepFigures &last, run::RunStatus &status);

private:
    using Reports = std::vector<std::optional<control::StepMessage>>;
    static void fill(const Reports &reports, run::RunStatus &status);
    static void fill(const std::vector<control::StepFigures> &figures, run::RunStatus &status);

    size_t m_ranks;
    std::map<int64_t, Reports> m_open;          ///< steps that some ranks have reported
    std::map<int, control::StepFigures> m_last; ///< by rank
};

} // namespace shardscope::launch
