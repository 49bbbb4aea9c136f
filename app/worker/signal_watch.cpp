// SPDX-License-Identifier: Apache-2.0
#include "app/worker/signal_watch.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace shardscope::worker {

SignalWatch::SignalWatch()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGHUP, SIG_IGN);
    m_signalFd = ::signalfd(-1, &signals, SFD_CLOEXEC);
    m_endFd = ::eventfd(0, EFD_CLOEXEC);
    if (m_signalFd < 0 || m_endFd < 0) { // blocked and unread, Ctrl+C would do nothing at all
        spdlog::warn("Signals can't be watched ({}): they end this rank at once, without a checkpoint.",
                     std::strerror(errno));
        ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
        return;
    }
    m_thread = std::thread([this] { watch(); });
}

SignalWatch::~SignalWatch()
{
    const uint64_t one = 1;
    if (m_thread.joinable() && ::write(m_endFd, &one, sizeof one) == sizeof one)
        m_thread.join();
    else if (m_thread.joinable())
        m_thread.detach();
    for (const int fd : {m_signalFd, m_endFd}) {
        if (fd >= 0)
            ::close(fd);
    }
}

void SignalWatch::watch()
{
    pollfd files[2] = {{m_signalFd, POLLIN, 0}, {m_endFd, POLLIN, 0}};
    for (;;) {
        if (::poll(files, 2, -1) < 0)
            continue;
        if (files[1].revents)
            return;
        signalfd_siginfo info = {};
        if (::read(m_signalFd, &info, sizeof info) != sizeof info)
            continue;
        const bool keyboard = info.ssi_signo == SIGINT;
        if (!m_joined) {
            std::fprintf(stderr, "%s before the run began: ending now.\n", keyboard ? "Interrupted" : "SIGTERM");
            ::_exit(keyboard ? kInterruptedExitCode : kTerminatedExitCode);
        }
        if (keyboard && m_interrupted) {
            std::fputs("Interrupted twice: ending now, without a checkpoint.\n", stderr);
            ::_exit(kInterruptedExitCode);
        }
        std::fprintf(stderr, "%s: stopping one or two steps on, with a checkpoint.%s\n",
                     keyboard ? "Interrupted" : "SIGTERM", keyboard ? " Once more ends it now." : "");
        m_interrupted = m_interrupted || keyboard;
        m_stop = true;
    }
}

} // namespace shardscope::worker
