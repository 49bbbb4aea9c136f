// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/step_retention.h"

#include <algorithm>

namespace shardscope::store {

StepRetention::StepRetention(const Retention &retention)
    : m_keepSteps(std::max<int64_t>(retention.keepSteps, 0))
    , m_keepFirst(std::max<int64_t>(retention.keepFirst, 0))
{
}

void StepRetention::stepBegan(int64_t stepId, int64_t startNs)
{
    if (stepId <= m_lastSeenId) {
        correctStart(stepId, startNs);
        return;
    }
    m_lastSeenId = stepId;
    if (m_firstSteps < m_keepFirst) {
        ++m_firstSteps;
        return;
    }
    if (!m_fromNs) {
        m_fromNs = startNs;
        m_doneToNs = startNs;
    }
    m_steps.push_back({stepId, startNs});
}

void StepRetention::correctStart(int64_t stepId, int64_t startNs)
{
    const auto step =
        std::find_if(m_steps.rbegin(), m_steps.rend(), [&](const Step &one) { return one.stepId == stepId; });
    if (step == m_steps.rend())
        return;
    step->startNs = startNs;
    // While nothing was deleted, the oldest of these is where the first steps end.
    if (m_firstDeletedId == 0 && stepId == m_steps.front().stepId) {
        m_fromNs = startNs;
        m_doneToNs = startNs;
    }
}

bool StepRetention::tighten()
{
    // The running step does not count: it can't be deleted.
    const auto finished = static_cast<int64_t>(m_steps.size()) - 1;
    const int64_t kept = m_keepSteps == 0 ? finished : std::min(m_keepSteps, finished);
    if (kept <= 1)
        return false;
    m_keepSteps = std::max<int64_t>(kept * 3 / 4, 1);
    return true;
}

std::optional<StepRetention::Deletion> StepRetention::due() const
{
    const auto finished = static_cast<int64_t>(m_steps.size()) - 1;
    if (m_keepSteps == 0 || finished <= m_keepSteps)
        return std::nullopt;
    const auto surplus = static_cast<size_t>(finished - m_keepSteps);
    return Deletion{*m_fromNs, m_doneToNs, m_steps[surplus].startNs, m_steps.front().stepId,
                    m_steps[surplus - 1].stepId};
}

void StepRetention::done(const Deletion &deletion)
{
    while (!m_steps.empty() && m_steps.front().stepId <= deletion.lastStepId)
        m_steps.pop_front();
    m_doneToNs = deletion.toNs;
    if (m_firstDeletedId == 0)
        m_firstDeletedId = deletion.firstStepId;
    m_lastDeletedId = deletion.lastStepId;
}

bool StepRetention::spansKept(int64_t stepId) const
{
    return m_firstDeletedId == 0 || stepId < m_firstDeletedId || stepId > m_lastDeletedId;
}

} // namespace shardscope::store
