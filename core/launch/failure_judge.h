// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/control/rank_messages.h"
#include "core/run/run_status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardscope::launch {

/// Decides which rank's reason is the run's. When one rank dies, its peers fail in their collectives a moment later,
/// and what they say may be read before its death is seen: so all that arrives within a short time is weighed. The
/// earliest counts, except that a failure in a collective comes after any other kind, and so does an abort(): NCCL's
/// watchdog ends a rank so that has waited for a dead one.
class FailureJudge
{
public:
    /// A rank said why it is about to end.
    void said(int rank, const control::FailureMessage &message);
    /// A rank's process ended badly.
    void ended(int rank, std::optional<int> exitCode, std::optional<int> signal, int64_t nowNs);

    bool any() const { return !m_cases.empty(); }
    /// What is known of this rank's failure.
    run::RunFailure of(int rank) const;
    /// The run's failure. Its text is the rank's own message, or empty: then the log's last lines serve.
    run::RunFailure verdict() const;

private:
    struct Case
    {
        run::RunFailure failure;
        bool consequence = false;
        int64_t timeNs = 0;
    };
    /// Index in m_cases; its size where there is none.
    size_t find(int rank) const;
    std::vector<Case> m_cases;
};

} // namespace shardscope::launch
