// SPDX-License-Identifier: Apache-2.0
// The supervisor's part in the end of a run: ranks that fail, are ended or are killed, and what is said of it.
#include "core/base/clock.h"
#include "core/launch/log_tail.h"
#include "core/launch/supervisor.h"
#include "core/observe/flight.h"
#include "core/run/json_access.h"

#include <algorithm>
#include <csignal>
#include <utility>

using nlohmann::json;
using shardscope::control::Command;

namespace shardscope::launch {

static constexpr int kTailLines = 20;

void Supervisor::onRankEnded(int rank)
{
    RankProcess &process = *m_ranks[rank];
    run::RankStatus &status = m_status.ranks[rank];
    status.exitCode = process.exitCode();
    status.signal = process.endSignal();
    const bool well = status.exitCode == 0;
    const bool asWanted = m_killing && !m_endingAfterFailure && !m_hang; // by `stop --now`
    status.state = well || asWanted ? RunState::Done : RunState::Failed;
    if (!well && !m_killing) {
        m_judge.ended(rank, status.exitCode, status.signal, realtimeNs());
        run::RunFailure failure = m_judge.of(rank);
        if (failure.text.empty())
            failure.text = logTail(m_plan.folder.logFile(m_plan.attempt, rank), kTailLines);
        tellOfDeath(failure);
        endAfterFailure();
    }
    if (!anyRunning())
        finish();
}

void Supervisor::tellOfDeath(const run::RunFailure &failure)
{
    const json pid = failure.rank ? json(m_status.ranks[static_cast<size_t>(*failure.rank)].pid) : json();
    m_observer.event(EventKind::Death, run::describeEnd(failure),
                     run::dump({{"rank", run::orNull(failure.rank)},
                                {"pid", pid},
                                {"signal", run::orNull(failure.signal)},
                                {"exit_code", run::orNull(failure.exitCode)},
                                {"text", failure.text}}));
}

void Supervisor::endAfterFailure()
{
    if (std::exchange(m_endingAfterFailure, true))
        return;
    tell("A rank has failed: the others are ended.");
    setState(RunState::Stopping);
    QTimer::singleShot(kSettleMs, this, &Supervisor::killAllSoon);
}

void Supervisor::interrupt()
{
    if (m_finished)
        return;
    if (++m_interrupts > 1)
        endNow();
    else
        enqueue(
            Command::Stop, [](const Result<json> &) {}, "interrupt");
}

void Supervisor::endNow()
{
    if (m_killing || m_finished)
        return;
    m_observer.event(EventKind::Command, "stop now", run::dump({{"step", run::orNull(m_status.step)}}));
    setState(RunState::Stopping);
    killAllSoon();
}

bool Supervisor::interrupted() const
{
    return m_interrupts > 0 && (!m_status.step || !m_status.steps || *m_status.step < *m_status.steps);
}

void Supervisor::killAllSoon()
{
    m_killing = true;
    killAll(SIGTERM);
    QTimer::singleShot(kPatienceMs, this, &Supervisor::killTheSilent);
    QTimer::singleShot(kClosingMs, this, [this] { killAll(SIGKILL); });
}

void Supervisor::killTheSilent()
{
    for (const auto &rank : m_ranks) {
        if (m_judge.of(rank->rank()).text.empty())
            rank->kill(SIGKILL);
    }
}

void Supervisor::killAll(int signal)
{
    for (const auto &rank : m_ranks)
        rank->kill(signal);
}

bool Supervisor::anyRunning() const
{
    return std::any_of(m_ranks.begin(), m_ranks.end(), [](const auto &rank) { return rank->running(); });
}

run::RunFailure Supervisor::decideFailure() const
{
    run::RunFailure failure = m_judge.verdict();
    if (failure.text.empty() && failure.rank)
        failure.text = logTail(m_plan.folder.logFile(m_plan.attempt, *failure.rank), kTailLines);
    // What it had begun and not ended when it died.
    const auto flight = observe::readFlight(m_plan.folder.flightFile(m_plan.attempt, failure.rank.value_or(0)));
    if (failure.rank && flight && flight->pending())
        failure.text +=
            (failure.text.empty() ? "It was in " : "\nIt was in ") + observe::describe(*flight->pending()) + ".";
    return failure;
}

/// Whoever sees the end, in state.json or by an answer, may go on with the run at once: the folder is whole and the
/// socket's path free before the lock is.
void Supervisor::finish()
{
    if (std::exchange(m_finished, true))
        return;
    m_heartbeat.stop();
    if (m_hang)
        m_status.failure = m_hang;
    else if (m_judge.any())
        m_status.failure = decideFailure();
    m_status.endedNs = realtimeNs();
    m_status.socket.clear();
    Q_EMIT ending(m_status);
    setState(m_status.failure ? RunState::Failed : RunState::Done);
    m_server.stopListening();
    m_lock.reset();
    const json result = json::parse(run::toJson(m_status));
    const std::string why = m_status.failure ? "The run has failed: " + run::describeEnd(*m_status.failure) + "."
                                             : "The run ended before the command came into force.";
    m_commands.runEnded(result, why);
    for (const auto &[client, id] : m_endNowAskers)
        m_server.reply(client, {.id = id, .result = result});
    m_server.close();
    Q_EMIT finished(m_status);
}

} // namespace shardscope::launch
