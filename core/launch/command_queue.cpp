// SPDX-License-Identifier: Apache-2.0
#include "core/launch/command_queue.h"

using nlohmann::json;
using shardscope::control::Command;

namespace shardscope::launch {

CommandQueue::CommandQueue(int ranks, Send send)
    : m_ranks(static_cast<size_t>(ranks))
    , m_send(std::move(send))
{
}

void CommandQueue::add(Command command, Done done)
{
    if (m_stopping && command != Command::Stop) {
        done(fail("The run is stopping."));
        return;
    }
    if (command == Command::Stop)
        m_stopping = true;
    m_queue.push_back({command, std::move(done)});
    advance();
}

void CommandQueue::advance()
{
    while (!m_underWay && !m_queue.empty()) {
        const Command command = m_queue.front().command;
        const bool nothingToDo =
            (command == Command::Pause && paused()) || (command == Command::Unpause && m_paused.empty());
        if (nothingToDo) {
            finishCurrent(json{{"step", m_step}});
            continue;
        }
        m_underWay = true;
        m_send(command, paused() ? Recipients::All : Recipients::RankZero);
    }
}

void CommandQueue::finishCurrent(const Result<json> &result)
{
    const Waiting finished = std::move(m_queue.front());
    m_queue.pop_front();
    m_underWay = false;
    finished.done(result);
}

void CommandQueue::rankPaused(int rank, int64_t step)
{
    m_paused.insert(rank);
    m_step = step;
    if (m_underWay && m_queue.front().command == Command::Pause && paused()) {
        finishCurrent(json{{"step", step}});
        advance();
    }
}

void CommandQueue::rankRuns(int rank, int64_t step)
{
    m_paused.erase(rank);
    m_step = step;
    if (m_underWay && m_queue.front().command == Command::Unpause && m_paused.empty()) {
        finishCurrent(json{{"step", step}});
        advance();
    }
}

void CommandQueue::checkpointWritten(int64_t step, const std::string &path)
{
    if (m_underWay && m_queue.front().command == Command::Checkpoint) {
        finishCurrent(json{{"step", step}, {"path", path}});
        advance();
    }
}

void CommandQueue::checkpointFailed(const std::string &reason)
{
    if (m_underWay && m_queue.front().command == Command::Checkpoint) {
        finishCurrent(fail("{}", reason));
        advance();
    }
}

void CommandQueue::runEnded(const json &result, const std::string &reason)
{
    const std::deque<Waiting> waiting = std::exchange(m_queue, {});
    for (const Waiting &each : waiting) {
        if (each.command == Command::Stop)
            each.done(result);
        else
            each.done(fail("{}", reason));
    }
}

} // namespace shardscope::launch
