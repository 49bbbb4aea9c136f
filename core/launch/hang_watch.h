// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/observe/flight.h"
#include "core/run/run_folder.h"
#include "core/run/run_status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::launch {

/// What a rank has done, as far as that can be seen from outside.
struct RankPulse
{
    int rank = 0;
    int64_t begun = 0;                         ///< collectives so far
    int64_t ended = 0;                         ///< of those that the flight file still holds
    std::optional<observe::FlightRecord> last; ///< the collective that it is in, else its last one
    bool inCollective = false;
    bool stopped = false; ///< by a signal (SIGSTOP) or a debugger
    int64_t cpuNs = 0;    ///< of all its threads
};

/// From attempt-K/rank-N.flight and /proc.
RankPulse takePulse(const run::RunFolder &folder, int attempt, int rank, int64_t pid);

/// Who the others wait for: a rank that is stopped, else the one that has begun the fewest collectives, else one that
/// is in none. Nothing where all are in the same one.
std::optional<int> lateRank(const std::vector<RankPulse> &ranks);

/// Finds that a run hangs: for the limit no rank has finished a step, no collective has begun or ended, no checkpoint
/// has grown, and a rank waits in a collective or none computes. Time is CLOCK_MONOTONIC, which does not count a
/// machine's sleep.
class HangWatch
{
public:
    /// limitNs 0: never.
    HangWatch(run::RunFolder folder, int attempt, int64_t limitNs);

    /// The run has moved: a step was done, a pause has ended.
    void moved(int64_t nowNs);
    /// To be asked every second while the run should move. The failure names the late rank, each rank's last collective
    /// and what to do.
    std::optional<run::RunFailure> check(const std::vector<run::RankStatus> &ranks, int64_t nowNs);

private:
    run::RunFailure describe(const std::vector<RankPulse> &ranks) const;

    run::RunFolder m_folder;
    int m_attempt;
    int64_t m_limitNs;
    int64_t m_stillSinceNs = 0;
    std::string m_signature; ///< of all that moves, at the last check; empty: not taken since moved()
    int64_t m_cpuNs = 0;     ///< of all ranks, when m_signature last changed
};

} // namespace shardscope::launch
