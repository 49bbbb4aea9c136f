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
    const Step step{stepId, {startNs, startNs}};
    if (static_cast<int64_t>(m_first.size()) < m_keepFirst) {
        m_first.push_back(step);
        return;
    }
    if (!m_from) {
        m_from = step.starts;
        m_doneToHostNs = startNs;
    }
    m_steps.push_back(step);
}

void StepRetention::correctStart(int64_t stepId, int64_t startNs)
{
    for (std::deque<Step> *steps : {&m_steps, &m_first}) {
        const auto step =
            std::find_if(steps->rbegin(), steps->rend(), [&](const Step &one) { return one.stepId == stepId; });
        if (step == steps->rend())
            continue;
        step->starts.deviceNs = startNs;
        // While nothing was deleted, the oldest of these is where the first steps end.
        if (steps == &m_steps && m_firstDeletedId == 0 && stepId == m_steps.front().stepId)
            m_from->deviceNs = startNs;
        return;
    }
}

StepRetention::Tightened StepRetention::tighten()
{
    // The running step does not count: it can't be deleted.
    const auto fewer = [this] {
        const auto finished = static_cast<int64_t>(m_steps.size()) - 1;
        const int64_t kept = m_keepSteps == 0 ? finished : std::min(m_keepSteps, finished);
        if (kept <= 1)
            return false;
        m_keepSteps = std::max<int64_t>(kept * 3 / 4, 1);
        return true;
    };
    if (fewer())
        return Tightened::FewerSteps;
    m_keepFirst = 0;
    if (m_first.empty())
        return Tightened::Nothing;
    m_from = m_first.front().starts;
    m_doneToHostNs = m_from->hostNs;
    m_steps.insert(m_steps.begin(), m_first.begin(), m_first.end());
    m_first.clear();
    // Where steps after them are deleted already, all of them go at once: what is deleted stays one range.
    m_keepSteps = 0;
    if (m_firstDeletedId != 0 || !fewer())
        m_keepSteps = 1;
    return Tightened::FirstSteps;
}

std::optional<StepRetention::Deletion> StepRetention::due() const
{
    const auto finished = static_cast<int64_t>(m_steps.size()) - 1;
    if (m_keepSteps == 0 || finished <= m_keepSteps)
        return std::nullopt;
    const auto surplus = static_cast<size_t>(finished - m_keepSteps);
    const int64_t firstId = m_steps.front().stepId;
    return Deletion{.from = *m_from,
                    .to = m_steps[surplus].starts,
                    .newFromHostNs = m_doneToHostNs,
                    .oldestStepId = m_firstDeletedId == 0 ? firstId : std::min(m_firstDeletedId, firstId),
                    .firstStepId = firstId,
                    .lastStepId = m_steps[surplus - 1].stepId};
}

void StepRetention::done(const Deletion &deletion)
{
    while (!m_steps.empty() && m_steps.front().stepId <= deletion.lastStepId)
        m_steps.pop_front();
    m_doneToHostNs = deletion.to.hostNs;
    m_firstDeletedId = deletion.oldestStepId;
    m_lastDeletedId = std::max(m_lastDeletedId, deletion.lastStepId);
}

bool StepRetention::spansKept(int64_t stepId) const
{
    return m_firstDeletedId == 0 || stepId < m_firstDeletedId || stepId > m_lastDeletedId;
}

} // namespace shardscope::store
