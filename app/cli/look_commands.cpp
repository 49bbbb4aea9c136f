// SPDX-License-Identifier: Apache-2.0
// status, attach: a run as its supervisor tells of it.
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "app/cli/run_printer.h"
#include "app/cli/status_text.h"
#include "core/base/clock.h"
#include "core/control/control_client.h"
#include "core/run/json_access.h"

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace shardscope::cli {

using namespace std::chrono_literals;
using nlohmann::json;

static json toJson(const run::RunSummary &summary)
{
    json object = json::parse(run::toJson(summary.status));
    object["name"] = summary.name;
    object["shown_name"] = summary.shownName();
    object["folder"] = summary.folder.root().string();
    object["problem"] = summary.problem.empty() ? json(nullptr) : json(summary.problem);
    return object;
}

static int listAll(Output &out, Format format)
{
    const auto runs = run::listRuns(runsDirectory(), realtimeNs());
    if (format == Format::Json) {
        json all = json::array();
        for (const run::RunSummary &each : runs)
            all.push_back(toJson(each));
        out.result(run::dump(all));
    } else if (runs.empty()) {
        out.result(
            fmt::format("There are no runs in {}. Start one with: shardscope-cli run", runsDirectory().string()));
    } else {
        out.result(runTable(runs));
    }
    return kDone;
}

int statusCommand(const std::string &name, Format format)
{
    Output out(STDOUT_FILENO);
    if (name.empty())
        return listAll(out, format);
    const auto folder = run::findRun(name, runsDirectory());
    if (!folder)
        return failWith(kWrongInput, folder.error().text);
    const run::RunSummary summary = run::summarize(*folder, realtimeNs());
    if (!summary.problem.empty() && format == Format::Text)
        return failWith(kWrongInput, summary.problem);
    out.result(format == Format::Json ? run::dump(toJson(summary)) : describe(summary));
    return kDone;
}

/// Set by Ctrl+C. A signal handler can reach nothing but what is static.
static volatile std::sig_atomic_t s_interrupted = 0;

static void watchForInterrupt()
{
    struct sigaction action
    {
    };
    action.sa_handler = [](int) { s_interrupted = 1; };
    ::sigaction(SIGINT, &action, nullptr); // without SA_RESTART: waiting ends
    ::signal(SIGPIPE, SIG_IGN);
}

static int left(const run::RunFolder &folder)
{
    Output(STDERR_FILENO)
        .line(fmt::format("The run goes on. Watch it again with: shardscope-cli attach \"{}\"", argumentFor(folder)));
    return kInterrupted;
}

/// What `attach` says at the end, and its exit code.
static int ended(const run::RunFolder &folder, RunPrinter &printer)
{
    const auto status = run::currentStatus(folder, realtimeNs());
    if (!status)
        return failWith(kJobFailed, status.error().text);
    printer.ended(folder, *status);
    if (status->state == RunState::Lost)
        return failWith(kJobFailed, fmt::format("The supervisor of {} is gone: the run is lost.", folder.name()));
    if (status->state == RunState::Failed)
        return failWith(kJobFailed, failureText(folder, *status));
    return kDone;
}

/// Without a supervisor's socket (another launcher): from state.json.
static int followFile(const run::RunFolder &folder, RunPrinter &printer)
{
    std::optional<int64_t> shown;
    for (;;) {
        const auto status = run::currentStatus(folder, realtimeNs());
        if (!status)
            return failWith(kJobFailed, status.error().text);
        if (!status->live())
            return ended(folder, printer);
        printer.state(*status);
        if (status->step && shown != status->step)
            printer.step(*status);
        shown = status->step;
        if (s_interrupted)
            return left(folder);
        std::this_thread::sleep_for(500ms);
    }
}

/// The supervisor can't be heard. Where the run goes on all the same, its file tells of it.
static int followInstead(const run::RunFolder &folder, RunPrinter &printer, const std::string &why)
{
    const auto status = run::currentStatus(folder, realtimeNs());
    if (status && status->live())
        Output(STDERR_FILENO).line(fmt::format("{} The run goes on: following its state.json.", why));
    return followFile(folder, printer);
}

static void show(RunPrinter &printer, const control::Event &event)
{
    if (event.name == "message") {
        std::string text;
        run::take(event.data, "text", text);
        printer.message(text);
        return;
    }
    const auto status = run::statusFromJson(event.data.dump());
    if (!status)
        return;
    if (event.name == "step")
        printer.step(*status);
    else if (event.name == "state")
        printer.state(*status);
}

int attachCommand(const std::string &name, Format format)
{
    watchForInterrupt();
    const auto folder = run::findRun(name, runsDirectory());
    if (!folder)
        return failWith(kWrongInput, folder.error().text);
    const auto status = run::currentStatus(*folder, realtimeNs());
    if (!status)
        return failWith(kWrongInput, status.error().text);
    Output out(STDOUT_FILENO);
    RunPrinter printer(out, format);
    if (!status->live())
        return ended(*folder, printer);
    printer.begun(*folder, status->attempt);
    if (status->socket.empty())
        return followFile(*folder, printer);
    auto client = control::ControlClient::connect(*folder);
    if (!client)
        return followInstead(*folder, printer, client.error().text);
    const auto now = client->request(control::RequestKind::Subscribe, 10s);
    if (!now)
        return followInstead(*folder, printer, now.error().text);
    show(printer, {"step", *now});
    for (;;) {
        const auto event = client->nextEvent(1s);
        if (s_interrupted)
            return left(*folder);
        if (!event) // closed, as a rule since the run has ended or its supervisor has died
            return followInstead(*folder, printer, event.error().text);
        if (*event)
            show(printer, **event);
    }
}

} // namespace shardscope::cli
