// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/store/writer.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace shardscope::store {

/// Decides which steps give up their spans. Knows steps by their ids and starts only, and no database.
class StepRetention
{
public:
    /// What begins in [fromNs, toNs) is to go. [newFromNs, toNs) is the part that no deletion before has covered.
    struct Deletion
    {
        int64_t fromNs = 0;
        int64_t newFromNs = 0;
        int64_t toNs = 0;
        int64_t firstStepId = 0; ///< the steps newly without spans
        int64_t lastStepId = 0;
    };

    explicit StepRetention(const Retention &retention);

    /// A step has begun; again where its start is known better (the device's). Ids of new steps ascend.
    void stepBegan(int64_t stepId, int64_t startNs);
    /// The database has outgrown the limit: keep a quarter fewer steps from now on. False: only one is kept already.
    bool tighten();
    /// What should be deleted now. Says so again until done() was told.
    std::optional<Deletion> due() const;
    void done(const Deletion &deletion);

    bool spansKept(int64_t stepId) const;
    int64_t keepSteps() const { return m_keepSteps; }

private:
    struct Step
    {
        int64_t stepId = 0;
        int64_t startNs = 0;
    };

    void correctStart(int64_t stepId, int64_t startNs);

    int64_t m_keepSteps; ///< 0: all
    int64_t m_keepFirst;
    int64_t m_firstSteps = 0;        ///< of keepFirst, seen so far
    int64_t m_lastSeenId = 0;        ///< the greatest step id so far
    std::deque<Step> m_steps;        ///< that may be deleted one day, the newest (running) one last
    std::optional<int64_t> m_fromNs; ///< where the first steps end
    int64_t m_doneToNs = 0;
    int64_t m_firstDeletedId = 0; ///< [first, last]; 0: none
    int64_t m_lastDeletedId = 0;
};

} // namespace shardscope::store
