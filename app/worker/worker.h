// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/worker/arguments.h"
#include "app/worker/rank_environment.h"
#include "app/worker/signal_watch.h"
#include "core/control/rank_channel.h"

#include <string>

namespace shardscope::worker {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;  ///< the job failed
inline constexpr int kExitMisused = 2; ///< wrong usage or input: nothing was made

/// Why this rank ends, and with which exit code.
struct Failure
{
    std::string text;
    int exitCode = kExitFailed;
    bool peerLost = false; ///< in a collective, because another rank has ended: whose reason is the better one
};

/// What a supervisor is told of it.
control::FailureMessage failureMessage(const Failure &failure);

/// Trains as this rank until the end. The channel is inert where there is no supervisor; the signals are watched only
/// then. Returns the exit code. A failure is told to the supervisor at once; after it the process must end without
/// static destructors: threads may still wait for a rank that is gone.
tl::expected<int, Failure> runRank(const Arguments &arguments, const RankEnvironment &environment,
                                   control::RankChannel &channel, SignalWatch *signals);

} // namespace shardscope::worker
