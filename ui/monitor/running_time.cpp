// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/running_time.h"

#include <algorithm>
#include <cmath>

namespace shardscope::ui {

void RunningTime::widen(int64_t attempt, int64_t timeNs)
{
    const auto [one, isNew] = m_attempts.try_emplace(attempt, Attempt{timeNs, timeNs});
    if (!isNew && timeNs >= one->second.beginNs && timeNs <= one->second.endNs)
        return;
    one->second.beginNs = std::min(one->second.beginNs, timeNs);
    one->second.endNs = std::max(one->second.endNs, timeNs);
    const Attempt *before = nullptr;
    for (auto &[number, next] : m_attempts) {
        next.leftOutNs = before ? before->leftOutNs + next.beginNs - before->endNs : 0;
        before = &next;
    }
}

int64_t RunningTime::attemptAt(int64_t timeNs) const
{
    int64_t found = m_attempts.empty() ? 0 : m_attempts.begin()->first;
    for (const auto &[number, attempt] : m_attempts) {
        if (attempt.beginNs <= timeNs)
            found = number;
    }
    return found;
}

double RunningTime::secondsOf(int64_t attempt, int64_t timeNs) const
{
    const auto one = m_attempts.find(attempt);
    if (one == m_attempts.end())
        return static_cast<double>(timeNs) / 1e9;
    const bool isLast = std::next(one) == m_attempts.end();
    const int64_t ns = isLast ? timeNs : std::min(timeNs, one->second.endNs);
    return static_cast<double>(ns - one->second.leftOutNs) / 1e9;
}

int64_t RunningTime::nsOf(double seconds) const
{
    const int64_t ns = std::llround(seconds * 1e9);
    int64_t leftOutNs = 0;
    for (const auto &[number, attempt] : m_attempts) {
        if (attempt.beginNs - attempt.leftOutNs <= ns)
            leftOutNs = attempt.leftOutNs;
    }
    return ns + leftOutNs;
}

double RunningTime::beginOf(int64_t attempt) const
{
    const auto one = m_attempts.find(attempt);
    return one == m_attempts.end() ? 0 : static_cast<double>(one->second.beginNs - one->second.leftOutNs) / 1e9;
}

} // namespace shardscope::ui
