// SPDX-License-Identifier: Apache-2.0
#include "core/launch/rank_process.h"

#include "core/launch/environment.h"
#include "core/launch/sockets.h"

#include <QFile>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

namespace shardscope::launch {

static QString toQString(const std::filesystem::path &path)
{
    return QFile::decodeName(path.c_str());
}

RankProcess::RankProcess(int rank, QObject *parent)
    : QObject(parent)
    , m_rank(rank)
{
    connect(&m_process, &QProcess::finished, this, &RankProcess::onFinished);
}

RankProcess::~RankProcess()
{
    // QProcess would wait 30 s for a process that it destroys.
    if (running()) {
        kill(SIGKILL);
        m_process.disconnect(this);
        m_process.waitForFinished(1000);
    }
}

Result<> RankProcess::start(const LaunchPlan &plan, int storePort, int storeFd)
{
    auto pair = makeSocketPair();
    if (!pair)
        return tl::unexpected(pair.error());
    const InheritedFds fds{pair->theirs.get(), storeFd};
    QProcessEnvironment environment;
    for (const auto &[name, value] : rankEnvironment(plan, m_rank, storePort, fds))
        environment.insert(QString::fromStdString(name), QString::fromStdString(value));
    m_process.setProcessEnvironment(environment);
    m_process.setProgram(toQString(plan.worker));
    m_process.setArguments(
        {toQString(plan.folder.configFile(plan.attempt)), QStringLiteral("--out"), toQString(plan.folder.root())});
    m_process.setStandardInputFile(QProcess::nullDevice());
    m_process.setProcessChannelMode(QProcess::MergedChannels);
    m_process.setStandardOutputFile(toQString(plan.folder.logFile(plan.attempt, m_rank)));
    // Runs in the child, between fork and exec: system calls only.
    m_process.setChildProcessModifier([fds] {
        ::setpgid(0, 0);
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGHUP, SIG_IGN);
        ::signal(SIGPIPE, SIG_DFL);
        ::signal(SIGTERM, SIG_DFL);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::fcntl(fds.control, F_SETFD, 0);
        if (fds.store >= 0)
            ::fcntl(fds.store, F_SETFD, 0);
    });
    m_process.start();
    if (!m_process.waitForStarted(10'000))
        return fail("Can't start rank {} ({}): {}.", m_rank, plan.worker.string(),
                    m_process.errorString().toStdString());
    m_pid = m_process.processId();
    m_channel = std::move(pair->ours);
    ::fcntl(m_channel.get(), F_SETFL, O_NONBLOCK);
    m_readable = std::make_unique<QSocketNotifier>(m_channel.get(), QSocketNotifier::Read);
    connect(m_readable.get(), &QSocketNotifier::activated, this, &RankProcess::readMessages);
    m_writable = std::make_unique<QSocketNotifier>(m_channel.get(), QSocketNotifier::Write);
    m_writable->setEnabled(false);
    connect(m_writable.get(), &QSocketNotifier::activated, this, &RankProcess::writeQueued);
    return {};
}

void RankProcess::send(const control::Order &order)
{
    sendLine(toLine(order));
}

void RankProcess::send(const control::ConfigurationChange &change)
{
    sendLine(toLine(change));
}

void RankProcess::sendLine(const std::string &line)
{
    if (!m_channel.valid())
        return;
    m_outgoing += line + "\n";
    writeQueued();
}

void RankProcess::writeQueued()
{
    ssize_t sent = 0;
    while (!m_outgoing.empty() && m_channel.valid()) {
        sent = ::send(m_channel.get(), m_outgoing.data(), m_outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            break;
        m_outgoing.erase(0, static_cast<size_t>(sent));
    }
    const bool full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (sent < 0 && !full) {
        spdlog::warn("Rank {} could not be told of a command: {}.", m_rank, std::strerror(errno));
        m_outgoing.clear();
    }
    if (m_writable)
        m_writable->setEnabled(full);
}

void RankProcess::kill(int signal)
{
    if (m_pid > 0 && running())
        ::kill(static_cast<pid_t>(-m_pid), signal);
}

void RankProcess::readMessages()
{
    char bytes[16384];
    for (;;) {
        const ssize_t got = m_channel.valid() ? ::read(m_channel.get(), bytes, sizeof bytes) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            m_readable.reset();
            m_writable.reset();
            m_channel.close();
            return;
        }
        for (const std::string &line : m_lines.add({bytes, static_cast<size_t>(got)})) {
            if (const auto message = control::messageFromLine(line))
                Q_EMIT arrived(m_rank, *message);
            else
                spdlog::warn("Rank {}: {}", m_rank, message.error().text);
        }
    }
}

void RankProcess::onFinished(int code, QProcess::ExitStatus status)
{
    readMessages();
    // Unix: for a process that a signal ended, the code is the signal's number.
    if (status == QProcess::CrashExit)
        m_endSignal = code;
    else
        m_exitCode = code;
    Q_EMIT ended(m_rank);
}

} // namespace shardscope::launch
