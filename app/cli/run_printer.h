// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/output.h"
#include "core/run/run_status.h"

#include <chrono>
#include <optional>

namespace shardscope::cli {

/// What `run` and `attach` show of a run that goes on: one live line on a terminal; plain lines elsewhere (the first
/// step, then one a second at most, and the last step); lines of JSON with --format json (every step, as far as
/// somebody reads them).
class RunPrinter
{
public:
    RunPrinter(Output &out, Format format);

    void begun(const run::RunFolder &folder, int attempt);
    void step(const run::RunStatus &status);
    void state(const run::RunStatus &status);
    void message(const std::string &text);
    void ended(const run::RunFolder &folder, const run::RunStatus &status);

private:
    void json(const char *event, const std::string &data);

    Output &m_out;
    Format m_format;
    std::optional<std::chrono::steady_clock::time_point> m_lastLine;
    std::optional<int64_t> m_lastStep; ///< the step that the last plain line showed
    RunState m_state = RunState::Starting;
};

} // namespace shardscope::cli
