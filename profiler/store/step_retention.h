// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/store/writer.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace shardscope::store {

/// Decides which steps give up their spans. Knows steps by their ids and starts only, and no database.
///
/// A step has two starts: on CUDA the host begins it up to a few steps before the device does, so what the host did has
/// to be looked for elsewhere than what the device did. On the CPU they are the same.
class StepRetention
{
public:
    struct Starts
    {
        int64_t deviceNs = 0; ///< as it is known by now
        int64_t hostNs = 0;   ///< as it was told first
    };

    /// What begins in [from, to) and belongs to one of the steps, or to none, is to go: from.hostNs … to.hostNs for
    /// what the host timed, from.deviceNs … to.deviceNs for what the device timed.
    struct Deletion
    {
        Starts from;
        Starts to;
        int64_t newFromHostNs = 0; ///< [newFromHostNs, to.hostNs) no deletion before has covered
        int64_t oldestStepId = 0;  ///< of all that have lost or now lose their spans
        int64_t firstStepId = 0;   ///< the steps newly without spans
        int64_t lastStepId = 0;
    };

    enum class Tightened {
        FewerSteps, ///< a quarter fewer of the newest steps are kept from now on
        FirstSteps, ///< the first steps are kept no longer
        Nothing     ///< one step is left, which can't be spared
    };

    explicit StepRetention(const Retention &retention);

    /// A step has begun; again where its start is known better (the device's). Ids of new steps ascend.
    void stepBegan(int64_t stepId, int64_t startNs);
    /// The database has outgrown the limit: keep fewer steps from now on.
    Tightened tighten();
    /// What should be deleted now. Says so again until done() was told.
    std::optional<Deletion> due() const;
    void done(const Deletion &deletion);

    bool spansKept(int64_t stepId) const;
    int64_t keepSteps() const { return m_keepSteps; }

private:
    struct Step
    {
        int64_t stepId = 0;
        Starts starts;
    };

    void correctStart(int64_t stepId, int64_t startNs);

    int64_t m_keepSteps; ///< 0: all
    int64_t m_keepFirst;
    int64_t m_lastSeenId = 0;     ///< the greatest step id so far
    std::deque<Step> m_first;     ///< of keepFirst, seen so far
    std::deque<Step> m_steps;     ///< that may be deleted one day, the newest (running) one last
    std::optional<Starts> m_from; ///< where the first steps end
    int64_t m_doneToHostNs = 0;
    int64_t m_firstDeletedId = 0; ///< [first, last]; 0: none
    int64_t m_lastDeletedId = 0;
};

} // namespace shardscope::store
