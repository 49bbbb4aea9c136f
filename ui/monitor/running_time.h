// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>

namespace shardscope::ui {

/// The time in which a run's attempts ran, one after the other: what lies between two attempts counts nothing. Turns
/// nanoseconds since the run's origin into seconds on an axis and back. Without attempts, and within the first, the
/// two are the same.
class RunningTime
{
public:
    /// Something of this attempt happened then.
    void widen(int64_t attempt, int64_t timeNs);

    /// Of a time in this attempt. Attempts never overlap on the axis, whatever a clock did between them.
    double secondsOf(int64_t attempt, int64_t timeNs) const;
    /// Of a time in whichever attempt ran then; between two: where they meet.
    double secondsAt(int64_t timeNs) const { return secondsOf(attemptAt(timeNs), timeNs); }
    int64_t nsOf(double seconds) const;
    /// The one that ran then, or had ended last.
    int64_t attemptAt(int64_t timeNs) const;
    /// Where an attempt begins on the axis.
    double beginOf(int64_t attempt) const;

    bool hasSeveral() const { return m_attempts.size() > 1; }
    struct Attempt
    {
        int64_t beginNs = 0;
        int64_t endNs = 0;
        int64_t leftOutNs = 0; ///< between the attempts before it
        bool operator==(const Attempt &) const = default;
    };
    const std::map<int64_t, Attempt> &attempts() const { return m_attempts; }
    bool operator==(const RunningTime &) const = default;

private:
    std::map<int64_t, Attempt> m_attempts; ///< by number
};

} // namespace shardscope::ui
