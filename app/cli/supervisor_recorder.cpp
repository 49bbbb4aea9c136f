// SPDX-License-Identifier: Apache-2.0
#include "app/cli/supervisor_recorder.h"

#include "core/base/clock.h"

#include <sys/utsname.h>
#include <unistd.h>

namespace shardscope::cli {

SupervisorRecorder::SupervisorRecorder(const run::RunFolder &folder, int attempt, int64_t originNs,
                                       const std::string &command)
    : m_place(run::DatabasePlace::choose(folder.supervisorDatabase(attempt)))
{
    auto writer = store::Writer::open(m_place.path());
    if (!writer) {
        m_problem = writer.error().text;
        return;
    }
    m_writer.emplace(std::move(*writer));
    utsname system{};
    ::uname(&system);
    m_process.attempt = attempt;
    m_process.host = system.nodename;
    m_process.pid = ::getpid();
    m_process.parentPid = ::getppid();
    m_process.command = command;
    m_process.startedNs = realtimeNs();
    m_writer->put(m_process);
    m_writer->put(store::MetaRow{1, "origin_ns", std::to_string(originNs)});
    m_writer->put(store::MetaRow{1, "schema_version", std::to_string(store::kSchemaVersion)});
    m_writer->put(store::MetaRow{1, "version", SHARDSCOPE_VERSION});
    m_writer->put(store::MetaRow{1, "source", "shardscope"});
    m_writer->add(store::ClockRow{1, realtimeNs(), monotonicNs(), 0, 0});
    keep(m_writer->flush());
}

void SupervisorRecorder::keep(const Result<> &written)
{
    if (!written)
        m_problem = written.error().text;
}

/// Its database has no steps: they are the ranks'. Which one an event is of stands in its detailJson.
void SupervisorRecorder::event(EventKind kind, std::string_view text, std::string_view detailJson,
                               std::optional<int64_t> /*step*/)
{
    if (!m_writer)
        return;
    m_writer->add(store::EventRow{
        .timeNs = realtimeNs(), .kind = kind, .text = std::string(text), .detailJson = std::string(detailJson)});
    // Events are few: each is committed at once, and none is lost with the supervisor.
    keep(m_writer->flush());
}

void SupervisorRecorder::close(int exitCode)
{
    if (!m_writer)
        return;
    m_process.endedNs = realtimeNs();
    m_process.exitCode = exitCode;
    m_writer->put(m_process);
    keep(m_writer->close());
    m_writer.reset();
    if (m_problem.empty())
        keep(m_place.moveHome());
}

} // namespace shardscope::cli
