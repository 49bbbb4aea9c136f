// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/control/line_splitter.h"
#include "core/control/rank_messages.h"
#include "core/launch/file_descriptor.h"
#include "core/launch/launch_plan.h"
#include "core/run/run_status.h"

#include <QObject>
#include <QProcess>
#include <QSocketNotifier>
#include <memory>

namespace shardscope::launch {

/// One rank: its process, its log file and its end of the control channel. It runs in a process group of its own and
/// ignores SIGINT, so that Ctrl+C in the terminal reaches the supervisor alone.
class RankProcess : public QObject
{
    Q_OBJECT
public:
    RankProcess(int rank, QObject *parent);
    ~RankProcess() override;

    /// storeFd: what rank 0's store listens at, -1 for other ranks.
    Result<> start(const LaunchPlan &plan, int storePort, int storeFd);

    int rank() const { return m_rank; }
    int64_t pid() const { return m_pid; }
    bool running() const { return m_process.state() != QProcess::NotRunning; }
    void send(const control::Order &order);
    void send(const control::ConfigurationChange &change);
    /// To the rank's process group.
    void kill(int signal);

    /// How it ended; empty while it runs.
    std::optional<int> exitCode() const { return m_exitCode; }
    std::optional<int> endSignal() const { return m_endSignal; }

Q_SIGNALS:
    void arrived(int rank, const shardscope::control::RankMessage &message);
    /// What it said before has arrived.
    void ended(int rank);

private:
    void sendLine(const std::string &line);
    void writeQueued();
    void readMessages();
    void onFinished(int code, QProcess::ExitStatus status);

    int m_rank;
    int64_t m_pid = 0;
    QProcess m_process;
    FileDescriptor m_channel;
    std::unique_ptr<QSocketNotifier> m_readable;
    std::unique_ptr<QSocketNotifier> m_writable; ///< on while m_outgoing waits for room
    std::string m_outgoing;
    control::LineSplitter m_lines;
    std::optional<int> m_exitCode;
    std::optional<int> m_endSignal;
};

} // namespace shardscope::launch
