// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace shardscope::cli {

/// While it lives, Ctrl+C and SIGTERM ask for an end instead of making one, and a terminal that is closed ends nothing.
/// One at a time: signals are the process's.
class CancelSignals
{
public:
    CancelSignals();
    ~CancelSignals();
    CancelSignals(const CancelSignals &) = delete;
    CancelSignals &operator=(const CancelSignals &) = delete;

    bool asked() const;

private:
    struct sigaction m_oldInterrupt
    {
    };
    struct sigaction m_oldTerminate
    {
    };
    struct sigaction m_oldHangUp
    {
    };
};

} // namespace shardscope::cli
