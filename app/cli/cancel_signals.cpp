// SPDX-License-Identifier: Apache-2.0
#include "app/cli/cancel_signals.h"

namespace shardscope::cli {

/// All that a signal's handler may touch.
static volatile std::sig_atomic_t cancelSignal = 0;

static void askToCancel(int signal)
{
    cancelSignal = signal;
}

CancelSignals::CancelSignals()
{
    cancelSignal = 0;
    struct sigaction action
    {
    };
    action.sa_handler = askToCancel;
    ::sigaction(SIGINT, &action, &m_oldInterrupt);
    ::sigaction(SIGTERM, &action, &m_oldTerminate);
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGHUP, &action, &m_oldHangUp);
}

CancelSignals::~CancelSignals()
{
    ::sigaction(SIGINT, &m_oldInterrupt, nullptr);
    ::sigaction(SIGTERM, &m_oldTerminate, nullptr);
    ::sigaction(SIGHUP, &m_oldHangUp, nullptr);
}

bool CancelSignals::asked() const
{
    return cancelSignal != 0;
}

} // namespace shardscope::cli
