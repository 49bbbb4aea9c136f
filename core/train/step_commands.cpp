// SPDX-License-Identifier: Apache-2.0
#include "core/train/step_commands.h"

#include <algorithm>

namespace shardscope::train {

void CommandSet::add(const CommandSet &other)
{
    pause |= other.pause;
    checkpoint |= other.checkpoint;
    stop |= other.stop;
    change = std::max(change, other.change); // each is a whole configuration: the newest says all
}

CommandWords toWords(const CommandSet &commands)
{
    return {commands.pause ? 1.0 : 0.0, commands.checkpoint ? 1.0 : 0.0, commands.stop ? 1.0 : 0.0,
            static_cast<double>(commands.change)};
}

CommandSet fromWords(std::span<const double> words)
{
    return {words[0] > 0, words[1] > 0, words[2] > 0, static_cast<int64_t>(words[3])};
}

void CommandSchedule::heard(int64_t step, const CommandSet &commands)
{
    if (commands.any())
        m_due[step + kDelaySteps].add(commands);
}

CommandSet CommandSchedule::takeDue(int64_t step)
{
    CommandSet due;
    while (!m_due.empty() && m_due.begin()->first <= step) {
        due.add(m_due.begin()->second);
        m_due.erase(m_due.begin());
    }
    return due;
}

bool CommandSchedule::stopIsComing() const
{
    return std::ranges::any_of(m_due, [](const auto &entry) { return entry.second.stop; });
}

} // namespace shardscope::train
