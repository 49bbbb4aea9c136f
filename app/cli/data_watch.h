// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/cancel_signals.h"
#include "app/cli/output.h"
#include "core/data/data_progress.h"

#include <optional>

namespace shardscope::cli {

/// Shows how far the preparation of a run's data is, and lets Ctrl+C (and SIGTERM) cancel it while this lives. On a
/// terminal one line is renewed; elsewhere a line is written every five seconds. One at a time: signals are the
/// process's.
class DataWatch
{
public:
    explicit DataWatch(Output &errors);
    ~DataWatch();
    DataWatch(const DataWatch &) = delete;
    DataWatch &operator=(const DataWatch &) = delete;

    /// For data::DatasetOptions; must not outlive this.
    data::ProgressFunction function();

private:
    void show(const data::DataProgress &progress);

    Output &m_errors;
    CancelSignals m_signals;
    bool m_shown = false;
    int64_t m_lastLineNs = 0;
};

} // namespace shardscope::cli
