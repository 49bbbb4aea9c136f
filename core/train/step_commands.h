// SPDX-License-Identifier: Apache-2.0
// How a command takes effect at one step on all ranks: it rides on the collective of step k as a word and is in force
// from step k + 2 on, because step k's word may be read only while step k + 1 runs.
#pragma once

#include "core/control/rank_messages.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>

namespace shardscope::train {

struct CommandSet
{
    bool pause = false;
    bool checkpoint = false;
    bool stop = false;
    int64_t change = 0; ///< number of the change of the configuration to take up; 0: none
    bool any() const { return pause || checkpoint || stop || change > 0; }
    void add(const CommandSet &other);
    bool operator==(const CommandSet &) const = default;
};

/// The set as numbers that are summed over the ranks: more than 0 means that some rank asks for it. A change comes from
/// one rank only, rank 0, so that the sum is its number.
using CommandWords = std::array<double, 4>;
CommandWords toWords(const CommandSet &commands);
CommandSet fromWords(std::span<const double> words);

/// What was heard, by the step from which on it is in force.
class CommandSchedule
{
public:
    static constexpr int64_t kDelaySteps = 2;

    /// The word of this step's collective.
    void heard(int64_t step, const CommandSet &commands);
    /// Takes out all that is in force before this step begins.
    CommandSet takeDue(int64_t step);
    /// True where a stop is known that is not in force yet.
    bool stopIsComing() const;

private:
    std::map<int64_t, CommandSet> m_due;
};

} // namespace shardscope::train
