// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_printer.h"

#include "app/cli/status_text.h"
#include "core/run/json_access.h"

namespace shardscope::cli {

using nlohmann::json;

RunPrinter::RunPrinter(Output &out, Format format)
    : m_out(out)
    , m_format(format)
{
}

void RunPrinter::json(const char *event, const std::string &data)
{
    m_out.event(fmt::format(R"({{"event":"{}","data":{}}})", event, data));
}

void RunPrinter::begun(const run::RunFolder &folder, int attempt)
{
    if (m_format == Format::Json)
        json("run", run::dump({{"name", folder.name()}, {"folder", folder.root().string()}, {"attempt", attempt}}));
    else
        m_out.line(attempt == 1 ? fmt::format("Run {}", folder.root().string())
                                : fmt::format("Run {}, attempt {}", folder.root().string(), attempt));
}

void RunPrinter::step(const run::RunStatus &status)
{
    if (m_format == Format::Json) {
        json("step", toJson(status));
        return;
    }
    if (m_out.isTerminal()) {
        m_out.progress(progressLine(status));
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (m_lastLine && now - *m_lastLine < std::chrono::seconds(1))
        return;
    m_lastLine = now;
    m_lastStep = status.step;
    m_out.line(stepLine(status));
}

void RunPrinter::state(const run::RunStatus &status)
{
    if (m_format == Format::Json) {
        json("state", toJson(status));
        return;
    }
    if (m_state == status.state)
        return;
    m_state = status.state;
    switch (status.state) {
    case RunState::Paused:
        m_out.line(fmt::format("Paused after step {}.", status.step.value_or(0)));
        break;
    case RunState::Stopping:
        m_out.line("Stopping …");
        break;
    default: // running shows by its steps, an end by ended()
        break;
    }
}

void RunPrinter::message(const std::string &text)
{
    if (m_format == Format::Json)
        json("message", run::dump({{"text", text}}));
    else
        m_out.line(text);
}

static std::string whereEnded(const run::RunStatus &status)
{
    if (status.step.value_or(0) == 0)
        return "before its first step";
    return fmt::format("after step {}{}", *status.step,
                       status.steps ? fmt::format(" of {}", *status.steps) : std::string());
}

void RunPrinter::ended(const run::RunFolder &folder, const run::RunStatus &status)
{
    if (m_format == Format::Json) {
        json("end", toJson(status));
        return;
    }
    if (status.step && m_lastStep != status.step)
        m_out.result(stepLine(status));
    if (status.state != RunState::Done)
        return;
    if (status.step && status.step == status.steps)
        m_out.result(fmt::format("Done: {}", folder.root().string()));
    else if (status.checkpointStep)
        m_out.result(fmt::format("Ended {}. Go on with: shardscope-cli run --resume \"{}\"", whereEnded(status),
                                 folder.root().string()));
    else
        m_out.result(fmt::format("Ended {}, without a checkpoint to go on from: {}", whereEnded(status),
                                 folder.root().string()));
}

} // namespace shardscope::cli
