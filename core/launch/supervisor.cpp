// SPDX-License-Identifier: Apache-2.0
#include "core/launch/supervisor.h"

#include "core/base/clock.h"
#include "core/config/configuration_file.h"
#include "core/control/socket_path.h"
#include "core/launch/sockets.h"
#include "core/run/json_access.h"
#include "core/run/process_identity.h"

#include <unistd.h>

using nlohmann::json;
using shardscope::control::Command;
using shardscope::control::Order;
using shardscope::control::RequestKind;

namespace shardscope::launch {

Supervisor::Supervisor(LaunchPlan plan, run::RunLock lock, observe::Observer &observer, QObject *parent)
    : QObject(parent)
    , m_plan(std::move(plan))
    , m_lock(std::move(lock))
    , m_observer(observer)
    , m_server(this)
    , m_commands(m_plan.ranks,
                 [this](const Order &order, CommandQueue::Recipients recipients) { sendCommand(order, recipients); })
    , m_settings(m_plan.configuration, m_plan.admit)
    , m_meter(m_plan.ranks)
    , m_hangWatch(m_plan.folder, m_plan.attempt, m_plan.hangNs)
{
    m_hangWatch.moved(monotonicNs());
    m_status.state = RunState::Starting;
    m_status.attempt = m_plan.attempt;
    m_status.pid = ::getpid();
    m_status.pidStartTicks = run::processStartTicks(::getpid()).value_or(0);
    m_status.bootId = run::bootId();
    m_status.startedNs = realtimeNs();
    if (m_plan.steps > 0)
        m_status.steps = m_plan.steps;
    if (m_plan.resumeFrom) {
        m_status.step = m_plan.resumeFrom->step;
        m_status.checkpointStep = m_plan.resumeFrom->step;
    }
    connect(&m_heartbeat, &QTimer::timeout, this, &Supervisor::keepControlSocket);
    connect(&m_heartbeat, &QTimer::timeout, this, &Supervisor::beat);
    connect(&m_heartbeat, &QTimer::timeout, this, &Supervisor::lookForHang);
    connect(&m_server, &ControlServer::requested, this, &Supervisor::onRequested);
}

Supervisor::~Supervisor() = default;

Result<> Supervisor::start()
{
    openControlSocket();
    m_status.heartbeatNs = realtimeNs();
    if (auto written = run::writeStatus(m_plan.folder, m_status); !written)
        return written;
    if (auto started = startRanks(); !started) {
        m_ranks.clear();
        m_status.failure = run::RunFailure{std::nullopt, std::nullopt, std::nullopt, started.error().text};
        finish();
        return started;
    }
    m_heartbeat.start(1000);
    return {};
}

Result<> Supervisor::startRanks()
{
    auto store = listenOnLoopback();
    if (!store)
        return tl::unexpected(store.error());
    for (int rank = 0; rank < m_plan.ranks; ++rank) {
        auto process = std::make_unique<RankProcess>(rank, nullptr);
        connect(process.get(), &RankProcess::arrived, this, &Supervisor::onArrived);
        connect(process.get(), &RankProcess::ended, this, &Supervisor::onRankEnded);
        if (auto started = process->start(m_plan, store->port, rank == 0 ? store->fd.get() : -1); !started)
            return started;
        m_status.ranks.push_back({.rank = rank, .pid = process->pid()});
        m_ranks.push_back(std::move(process));
    }
    return {};
}

void Supervisor::openControlSocket()
{
    auto path = control::controlSocketPath(m_plan.folder);
    auto listening = path ? m_server.listen(*path) : Result<>(tl::unexpected(path.error()));
    m_status.socket = listening ? path->string() : std::string();
    if (!listening && !m_toldOfNoSocket) // Training is worth more than the commands to it.
        tell(fmt::format("The run takes no commands: {}", listening.error().text));
    m_toldOfNoSocket = !listening;
}

/// A user's runtime folder goes with the last session, and the run goes on.
void Supervisor::keepControlSocket()
{
    if (!m_server.isReachable())
        openControlSocket();
}

void Supervisor::beat()
{
    m_status.heartbeatNs = realtimeNs();
    const auto written = run::writeStatus(m_plan.folder, m_status);
    if (!written && !m_toldOfBrokenState)
        tell(fmt::format("The state of the run can't be saved; it goes on. {}", written.error().text));
    m_toldOfBrokenState = !written;
}

/// While ranks are set up, paused or being ended nothing is expected to move.
void Supervisor::lookForHang()
{
    const bool shouldMove = m_status.state == RunState::Running || m_status.state == RunState::Stopping;
    if (!shouldMove || m_killing || m_endingAfterFailure || m_commands.paused()) {
        m_hangWatch.moved(monotonicNs());
        return;
    }
    m_hang = m_hangWatch.check(m_status.ranks, monotonicNs());
    if (!m_hang)
        return;
    tellOfDeath(*m_hang);
    tell("The run has hung: its ranks are ended.");
    setState(RunState::Stopping);
    killAllSoon();
}

void Supervisor::setState(RunState state)
{
    if (m_status.state == state)
        return;
    m_status.state = state;
    beat();
    Q_EMIT stateChanged(m_status);
    m_server.publish({"state", json::parse(run::toJson(m_status))});
}

void Supervisor::tell(const std::string &text)
{
    Q_EMIT message(QString::fromStdString(text));
    m_server.publish({"message", {{"text", text}}});
}

void Supervisor::onArrived(int rank, const control::RankMessage &message)
{
    std::visit([&](const auto &m) { on(rank, m); }, message);
}

void Supervisor::on(int rank, const control::ReadyMessage &message)
{
    m_status.ranks[rank].state = RunState::Running;
    if (message.steps > 0)
        m_status.steps = message.steps;
    const auto ready = [](const run::RankStatus &each) { return each.state == RunState::Running; };
    if (m_status.state == RunState::Starting && std::all_of(m_status.ranks.begin(), m_status.ranks.end(), ready))
        setState(RunState::Running);
}

void Supervisor::on(int rank, const control::StepMessage &message)
{
    m_status.ranks[rank].step = message.step;
    m_status.ranks[rank].peakAllocatedBytes = message.figures.peakAllocatedBytes;
    if (!m_meter.add(rank, message, m_status))
        return;
    m_hangWatch.moved(monotonicNs());
    if (!m_isInForceKept) // an attempt's settings count from the first step that they led to
        keepInForce(config::toJson(m_plan.configuration));
    Q_EMIT stepDone(m_status);
    if (m_server.hasSubscribers())
        m_server.publish({"step", json::parse(run::toJson(m_status))});
}

void Supervisor::on(int rank, const control::StepFigures &figures)
{
    if (figures.peakAllocatedBytes)
        m_status.ranks[rank].peakAllocatedBytes = figures.peakAllocatedBytes;
    m_meter.addLast(rank, figures, m_status);
}

void Supervisor::on(int rank, const control::PausedMessage &message)
{
    m_status.ranks[rank].state = RunState::Paused;
    m_commands.rankPaused(rank, message.step);
    if (m_commands.paused() && !m_commands.stopping())
        setState(RunState::Paused);
}

void Supervisor::on(int rank, const control::RunningMessage &message)
{
    m_status.ranks[rank].state = RunState::Running;
    m_commands.rankRuns(rank, message.step);
    if (m_status.state == RunState::Paused && !m_commands.paused())
        setState(RunState::Running);
}

void Supervisor::on(int /*rank*/, const control::CheckpointMessage &message)
{
    m_status.checkpointStep = message.step;
    m_observer.event(EventKind::Checkpoint, fmt::format("checkpoint of step {}", message.step),
                     run::dump({{"step", message.step}, {"path", message.path}}));
    tell(fmt::format("Checkpoint of step {}: {}", message.step, message.path));
    if (message.ordered)
        m_commands.checkpointWritten(message.step, message.path);
}

void Supervisor::on(int rank, const control::WarningMessage &message)
{
    // All ranks report a checkpoint that failed.
    if (message.failedCheckpoint && rank != 0)
        return;
    m_observer.event(EventKind::Warning, message.text, run::dump({{"rank", rank}}));
    tell(fmt::format("Rank {}: {}", rank, message.text));
    if (message.recording)
        m_status.recordingProblem = fmt::format("Rank {}: {}", rank, message.text);
    if (message.ordered)
        m_commands.checkpointFailed(message.text);
}

void Supervisor::on(int rank, const control::FailureMessage &message)
{
    if (m_killing)
        return;
    m_judge.said(rank, message);
    endAfterFailure();
}

void Supervisor::sendCommand(const Order &order, CommandQueue::Recipients recipients)
{
    // What a Set is about goes to all before anybody is told to set it: no rank can wait for it in vain.
    if (const auto change = m_changes.find(order.change); order.command == Command::Set && change != m_changes.end()) {
        for (const auto &rank : m_ranks)
            rank->send(change->second);
    }
    for (const auto &rank : m_ranks) {
        if (rank->rank() == 0 || recipients == CommandQueue::Recipients::All)
            rank->send(order);
    }
}

void Supervisor::enqueue(Command command, CommandQueue::Done done, std::string_view asker)
{
    m_observer.event(EventKind::Command, toText(command),
                     run::dump({{"asker", asker}, {"step", run::orNull(m_status.step)}}));
    if (command == Command::Stop)
        setState(RunState::Stopping);
    m_commands.add(command, std::move(done));
}

static std::optional<Command> commandOf(RequestKind kind)
{
    switch (kind) {
    case RequestKind::Pause:
        return Command::Pause;
    case RequestKind::Unpause:
        return Command::Unpause;
    case RequestKind::Checkpoint:
        return Command::Checkpoint;
    case RequestKind::Stop:
        return Command::Stop;
    case RequestKind::Status:
    case RequestKind::Subscribe:
    case RequestKind::StopNow:
    case RequestKind::Set:
    case RequestKind::Undo:
    case RequestKind::Configuration:
        break;
    }
    return std::nullopt;
}

void Supervisor::onRequested(qint64 client, const control::Request &request)
{
    if (const auto command = commandOf(request.kind)) {
        const auto answer = [this, client, id = request.id](const Result<json> &result) {
            m_server.reply(client, result ? control::Reply{.id = id, .result = *result}
                                          : control::Reply{.id = id, .ok = false, .error = result.error().text});
        };
        enqueue(*command, answer, "control socket");
        return;
    }
    if (request.kind == RequestKind::StopNow) {
        m_endNowAskers.emplace_back(client, request.id);
        endNow();
        return;
    }
    if (request.kind == RequestKind::Set || request.kind == RequestKind::Undo)
        return configure(client, request);
    if (request.kind == RequestKind::Configuration)
        return m_server.reply(client, {.id = request.id, .result = m_settings.describe()});
    if (request.kind == RequestKind::Subscribe)
        m_server.subscribe(client);
    m_server.reply(client, {.id = request.id, .result = json::parse(run::toJson(m_status))});
}

} // namespace shardscope::launch
