// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/control/rank_messages.h"

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace shardscope::launch {

/// Carries commands out one after the other: the next is sent once the one before is in force on every rank. Running
/// ranks hear of commands through rank 0, paused ones are told one by one (see control::Command).
class CommandQueue
{
public:
    enum class Recipients { RankZero, All };
    using Send = std::function<void(const control::Order &, Recipients)>;
    /// What a command's asker gets: {"step": …, "path": …}, or why it was not carried out. Of a Set the step is the
    /// first one under the change.
    using Done = std::function<void(const Result<nlohmann::json> &)>;

    CommandQueue(int ranks, Send send);

    /// done may be called before add() returns. A stop is done when the run has ended.
    void add(const control::Order &order, Done done);

    void rankPaused(int rank, int64_t step);
    void rankRuns(int rank, int64_t step);
    void rankConfigured(int rank, int64_t change, int64_t firstStep);
    void checkpointWritten(int64_t step, const std::string &path);
    void checkpointFailed(const std::string &reason);
    /// Answers all that wait: a stop with the result, others with `reason` as their error.
    void runEnded(const nlohmann::json &result, const std::string &reason);

    bool paused() const { return m_paused.size() == m_ranks; }
    bool stopping() const { return m_stopping; }

private:
    struct Waiting
    {
        control::Order order;
        Done done;
    };
    /// Sends the first command that has something to do; answers those that have not.
    void advance();
    void finishCurrent(const Result<nlohmann::json> &result);

    size_t m_ranks;
    Send m_send;
    std::deque<Waiting> m_queue; ///< the first is under way while m_underWay
    bool m_underWay = false;
    bool m_stopping = false;
    std::set<int> m_paused;     ///< ranks that said so
    std::set<int> m_configured; ///< ranks that have taken up the change under way
    int64_t m_step = 0;
};

} // namespace shardscope::launch
