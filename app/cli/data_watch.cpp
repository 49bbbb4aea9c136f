// SPDX-License-Identifier: Apache-2.0
#include "app/cli/data_watch.h"

#include "core/base/clock.h"

namespace shardscope::cli {

static constexpr int64_t kQuietNs = 300'000'000; ///< what takes less is not worth a line
static constexpr int64_t kLineEveryNs = 5'000'000'000;

/// All that a signal's handler may touch.
static volatile std::sig_atomic_t cancelSignal = 0;

static void askToCancel(int signal)
{
    cancelSignal = signal;
}

DataWatch::DataWatch(Output &errors)
    : m_errors(errors)
    , m_lastLineNs(monotonicNs())
{
    cancelSignal = 0;
    struct sigaction action
    {
    };
    action.sa_handler = askToCancel;
    ::sigaction(SIGINT, &action, &m_oldInterrupt);
    ::sigaction(SIGTERM, &action, &m_oldTerminate);
    action.sa_handler = SIG_IGN; // a terminal that is closed ends no run
    ::sigaction(SIGHUP, &action, &m_oldHangUp);
}

DataWatch::~DataWatch()
{
    if (m_shown)
        m_errors.progress("");
    ::sigaction(SIGINT, &m_oldInterrupt, nullptr);
    ::sigaction(SIGTERM, &m_oldTerminate, nullptr);
    ::sigaction(SIGHUP, &m_oldHangUp, nullptr);
}

data::ProgressFunction DataWatch::function()
{
    return [this](const data::DataProgress &progress) {
        show(progress);
        return cancelSignal == 0;
    };
}

void DataWatch::show(const data::DataProgress &progress)
{
    if (progress.elapsedNs < kQuietNs)
        return;
    if (m_errors.isTerminal()) {
        m_errors.progress(data::toText(progress));
        m_shown = true;
        return;
    }
    const int64_t now = monotonicNs();
    if (now - m_lastLineNs < kLineEveryNs)
        return;
    m_lastLineNs = now;
    m_errors.line(data::toText(progress));
}

} // namespace shardscope::cli
