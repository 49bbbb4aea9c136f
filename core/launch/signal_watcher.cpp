// SPDX-License-Identifier: Apache-2.0
#include "core/launch/signal_watcher.h"

#include <csignal>
#include <sys/signalfd.h>

namespace shardscope::launch {

SignalWatcher::SignalWatcher(QObject *parent)
    : QObject(parent)
{
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    // A shell starts background jobs with SIGINT ignored, and what is ignored never reaches a signalfd.
    ::signal(SIGINT, SIG_DFL);
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
    m_fd = FileDescriptor(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
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
