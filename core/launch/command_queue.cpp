// SPDX-License-Identifier: Apache-2.0
#include "core/launch/command_queue.h"

using nlohmann::json;
using shardscope::control::Command;
using shardscope::control::Order;

namespace shardscope::launch {

CommandQueue::CommandQueue(int ranks, Send send)
    : m_ranks(static_cast<size_t>(ranks))
    , m_send(std::move(send))
{
}

void CommandQueue::add(const Order &order, Done done)
{
    if (m_stopping && order.command != Command::Stop) {
        done(fail("The run is stopping."));
        return;
    }
    if (order.command == Command::Stop)
        m_stopping = true;
    m_queue.push_back({order, std::move(done)});
    advance();
}

void CommandQueue::advance()
{
    while (!m_underWay && !m_queue.empty()) {
        const Order order = m_queue.front().order;
        const Command command = order.command;
        const bool nothingToDo =
            (command == Command::Pause && paused()) || (command == Command::Unpause && m_paused.empty());
        if (nothingToDo) {
            finishCurrent(json{{"step", m_step}});
            continue;
        }
        m_underWay = true;
        m_send(order, paused() ? Recipients::All : Recipients::RankZero);
    }
}

void CommandQueue::finishCurrent(const Result<json> &result)
{
    const Waiting finished = std::move(m_queue.front());
    m_queue.pop_front();
    m_underWay = false;
    m_configured.clear();
    finished.done(result);
}

void CommandQueue::rankPaused(int rank, int64_t step)
{
    m_paused.insert(rank);
    m_step = step;
    if (m_underWay && m_queue.front().order.command == Command::Pause && paused()) {
        finishCurrent(json{{"step", step}});
        advance();
    }
}

void CommandQueue::rankRuns(int rank, int64_t step)
{
    m_paused.erase(rank);
    m_step = step;
    if (m_underWay && m_queue.front().order.command == Command::Unpause && m_paused.empty()) {
        finishCurrent(json{{"step", step}});
        advance();
    }
}

void CommandQueue::rankConfigured(int rank, int64_t change, int64_t firstStep)
{
    if (!m_underWay || m_queue.front().order != Order(Command::Set, change))
        return;
    m_configured.insert(rank);
    if (m_configured.size() == m_ranks) {
        finishCurrent(json{{"step", firstStep}});
        advance();
    }
}

void CommandQueue::checkpointWritten(int64_t step, const std::string &path)
{
    if (m_underWay && m_queue.front().order.command == Command::Checkpoint) {
        finishCurrent(json{{"step", step}, {"path", path}});
        advance();
    }
}

void CommandQueue::checkpointFailed(const std::string &reason)
{
    if (m_underWay && m_queue.front().order.command == Command::Checkpoint) {
        finishCurrent(fail("{}", reason));
        advance();
    }
}

void CommandQueue::runEnded(const json &result, const std::string &reason)
{
    const std::deque<Waiting> waiting = std::exchange(m_queue, {});
    for (const Waiting &each : waiting) {
        if (each.order.command == Command::Stop)
            each.done(result);
        else
            each.done(fail("{}", reason));
    }
}

} // namespace shardscope::launch
