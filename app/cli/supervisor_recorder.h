// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/observe/observer.h"
#include "core/run/database_place.h"
#include "core/run/run_folder.h"
#include "profiler/store/writer.h"

#include <optional>
#include <string>

namespace shardscope::cli {

/// Writes what a supervisor tells (commands, checkpoints, warnings, deaths) to attempt-K/supervisor.sqlite. A database
/// (where that is on a network file system, to a local folder, and moved there at the end). A database that can't be
/// written costs the record, never the run.
class SupervisorRecorder : public observe::Observer
{
public:
    SupervisorRecorder(const run::RunFolder &folder, int attempt, int64_t originNs, const std::string &command);

    void event(EventKind kind, std::string_view text, std::string_view detailJson = {},
               std::optional<int64_t> step = {}) override;
    /// The supervisor's own end.
    void close(int exitCode);
    /// Why nothing (more) is recorded; empty where all is well.
    const std::string &problem() const { return m_problem; }

private:
    void keep(const Result<> &written);
    run::DatabasePlace m_place;
    store::ProcessRow m_process;
    std::optional<store::Writer> m_writer;
    std::string m_problem;
};

} // namespace shardscope::cli
