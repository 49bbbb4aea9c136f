// SPDX-License-Identifier: Apache-2.0
#include "core/launch/failure_judge.h"

#include <algorithm>
#include <csignal>
#include <tuple>

namespace shardscope::launch {

/// A death is seen later than it happened, a message carries its own time.
static constexpr int64_t kDeathSeenLateNs = 200'000'000;

size_t FailureJudge::find(int rank) const
{
    const auto found =
        std::find_if(m_cases.begin(), m_cases.end(), [&](const Case &c) { return c.failure.rank == rank; });
    return static_cast<size_t>(found - m_cases.begin());
}

run::RunFailure FailureJudge::of(int rank) const
{
    const size_t known = find(rank);
    return known < m_cases.size() ? m_cases[known].failure : run::RunFailure{rank, {}, {}, {}};
}

void FailureJudge::said(int rank, const control::FailureMessage &message)
{
    if (find(rank) < m_cases.size())
        return;
    Case newCase;
    newCase.failure.rank = rank;
    newCase.failure.exitCode = message.exitCode;
    newCase.failure.text = message.text;
    newCase.consequence = message.inCollective;
    newCase.timeNs = message.wallNs;
    m_cases.push_back(newCase);
}

void FailureJudge::ended(int rank, std::optional<int> exitCode, std::optional<int> signal, int64_t nowNs)
{
    if (const size_t known = find(rank); known < m_cases.size()) {
        m_cases[known].failure.exitCode = exitCode;
        m_cases[known].failure.signal = signal;
        return;
    }
    Case newCase;
    newCase.failure.rank = rank;
    newCase.failure.exitCode = exitCode;
    newCase.failure.signal = signal;
    newCase.consequence = signal == SIGABRT;
    newCase.timeNs = nowNs - kDeathSeenLateNs;
    m_cases.push_back(newCase);
}

run::RunFailure FailureJudge::verdict() const
{
    const auto first = std::min_element(m_cases.begin(), m_cases.end(), [](const Case &a, const Case &b) {
        return std::tie(a.consequence, a.timeNs) < std::tie(b.consequence, b.timeNs);
    });
    return first == m_cases.end() ? run::RunFailure{} : first->failure;
}

} // namespace shardscope::launch
