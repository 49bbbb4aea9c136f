// SPDX-License-Identifier: Apache-2.0
#include "core/launch/signal_watcher.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

namespace shardscope::launch {

static sigset_t watchedSignals()
{
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTERM);
    return watched;
}

void SignalWatcher::hold()
{
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    // A shell starts background jobs with SIGINT ignored, and what is ignored never reaches a signalfd.
    ::signal(SIGINT, SIG_DFL);
    const sigset_t watched = watchedSignals();
    ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
}

SignalWatcher::SignalWatcher(QObject *parent)
    : QObject(parent)
{
    hold();
    const sigset_t watched = watchedSignals();
    m_fd = FileDescriptor(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!m_fd.valid()) { // blocked and unread, Ctrl+C would do nothing at all
        spdlog::warn("Signals can't be watched ({}): Ctrl+C ends the run at once, without a checkpoint.",
                     std::strerror(errno));
        ::pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
        return;
    }
    m_readable = std::make_unique<QSocketNotifier>(m_fd.get(), QSocketNotifier::Read);
    connect(m_readable.get(), &QSocketNotifier::activated, this, &SignalWatcher::read);
}

void SignalWatcher::read()
{
    signalfd_siginfo info{};
    while (::read(m_fd.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        Q_EMIT received(static_cast<int>(info.ssi_signo));
}

} // namespace shardscope::launch
