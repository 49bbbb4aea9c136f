// SPDX-License-Identifier: Apache-2.0
#include "app/worker/status_keeper.h"

#include "core/base/clock.h"
#include "core/config/configuration_file.h"
#include "core/run/process_identity.h"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <utility>

namespace shardscope::worker {

StatusKeeper::StatusKeeper(run::RunFolder folder, run::RunLock lock, int attempt, int worldSize,
                           const config::RunConfiguration &configuration)
    : m_folder(std::move(folder))
    , m_lock(std::move(lock))
    , m_worldSize(worldSize)
    , m_toKeep(configuration)
{
    m_status.state = RunState::Starting;
    m_status.attempt = attempt;
    m_status.pid = ::getpid();
    m_status.pidStartTicks = run::processStartTicks(::getpid()).value_or(0);
    m_status.bootId = run::bootId();
    m_status.startedNs = realtimeNs();
    m_status.steps = configuration.train.steps;
    m_thread = std::thread([this] { keep(); });
}

StatusKeeper::~StatusKeeper()
{
    {
        const std::lock_guard lock(m_mutex);
        m_ending = true;
        if (m_status.live())
            m_status.state = RunState::Failed;
        m_status.endedNs = realtimeNs();
    }
    m_changed.notify_all();
    m_thread.join();
    write();
}

void StatusKeeper::keep()
{
    std::unique_lock lock(m_mutex);
    while (!m_ending) {
        lock.unlock();
        write();
        lock.lock();
        m_changed.wait_for(lock, std::chrono::seconds(1), [this] { return m_ending; });
    }
}

void StatusKeeper::write()
{
    run::RunStatus status;
    {
        const std::lock_guard lock(m_mutex);
        m_status.heartbeatNs = realtimeNs();
        status = m_status;
    }
    const auto written = run::writeStatus(m_folder, status);
    if (!written && !m_warned)
        spdlog::warn("{}", written.error().text);
    m_warned = !written;
}

void StatusKeeper::running(int64_t stepsDone)
{
    const std::lock_guard lock(m_mutex);
    m_status.state = RunState::Running;
    m_status.step = stepsDone;
}

/// As the supervisor does: an attempt that never does a step leaves nothing for a resumed run to take over.
void StatusKeeper::keepInForce()
{
    const auto configuration = std::exchange(m_toKeep, {});
    if (!configuration)
        return;
    const auto written =
        config::writeConfiguration(m_folder.inForceFile(m_status.attempt), config::toJson(*configuration));
    if (!written)
        spdlog::warn("A resumed run would not know of this attempt's settings: {}", written.error().text);
}

void StatusKeeper::stepDone(const train::StepReport &report)
{
    keepInForce();
    const std::lock_guard lock(m_mutex);
    m_status.step = report.number;
    m_status.loss = report.result.loss;
    m_status.take(report.result.state, report.result.lossScale);
    if (report.result.validationLoss)
        m_status.validationLoss = report.result.validationLoss;
    if (report.result.loss)
        m_status.lossTail.push_back(*report.result.loss);
    if (m_status.lossTail.size() > run::RunStatus::kLossTail)
        m_status.lossTail.erase(m_status.lossTail.begin());
    m_status.stepNs = report.stepNs;
    if (report.stepNs > 0)
        m_status.tokensPerSecond =
            static_cast<double>(report.result.tokens * m_worldSize) * 1e9 / static_cast<double>(report.stepNs);
    take(report.figures);
}

void StatusKeeper::figures(const control::StepFigures &figures)
{
    const std::lock_guard lock(m_mutex);
    take(figures);
}

/// With m_mutex held.
void StatusKeeper::take(const control::StepFigures &figures)
{
    if (figures.peakAllocatedBytes)
        m_status.peakAllocatedBytes = figures.peakAllocatedBytes;
    if (figures.exposedCommunicationNs && figures.ofNs.value_or(0) > 0)
        m_status.exposedCommunicationShare =
            static_cast<double>(*figures.exposedCommunicationNs) / static_cast<double>(*figures.ofNs);
}

void StatusKeeper::checkpointWritten(int64_t step)
{
    const std::lock_guard lock(m_mutex);
    m_status.checkpointStep = step;
}

void StatusKeeper::lostRecording(const std::string &why)
{
    const std::lock_guard lock(m_mutex);
    m_status.recordingProblem = why;
}

void StatusKeeper::finish(RunState state, std::optional<run::RunFailure> failure)
{
    const std::lock_guard lock(m_mutex);
    m_status.state = state;
    m_status.failure = std::move(failure);
}

} // namespace shardscope::worker
