// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/control/rank_channel.h"
#include "core/train/step_commands.h"

namespace shardscope::train {

/// Where a rank's commands come from: its supervisor's channel, or signals where there is no supervisor.
class CommandSource
{
public:
    virtual ~CommandSource() = default;
    /// What this rank asks all ranks to do. Asked once a step; must not block.
    virtual CommandSet poll() = 0;
    /// All ranks have paused after `step` steps; returns the next command, the same on all of them.
    virtual control::Order waitWhilePaused(int64_t step) = 0;
    /// The configuration of that number, which all ranks take up now; waits for it. An error where it can't come.
    virtual Result<control::ConfigurationChange> change(int64_t number) = 0;
};

} // namespace shardscope::train
