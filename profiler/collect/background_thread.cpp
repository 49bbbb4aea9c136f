// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/background_thread.h"

#include <csignal>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace shardscope::collect {

std::thread startBackgroundThread(std::string name, std::function<void()> run)
{
    // A thread inherits the mask at its birth: no signal can come before it would set its own.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread([name = std::move(name), run = std::move(run)] {
        ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
        // On Linux a thread has a niceness of its own. Refused, it only means less courtesy.
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 5);
        run();
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

} // namespace shardscope::collect
