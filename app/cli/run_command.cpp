// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "app/cli/run_printer.h"
#include "app/cli/status_text.h"
#include "app/cli/supervisor_recorder.h"
#include "core/data/data_progress.h"
#include "core/launch/signal_watcher.h"
#include "core/launch/supervisor.h"
#include "core/run/run_record.h"

#include <QCoreApplication>
#include <csignal>
#include <cstdlib>
#include <unistd.h>

namespace shardscope::cli {

static std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

/// Ctrl+C once: stop with a checkpoint, after the step that the ranks agree on; twice: now. SIGTERM: as once.
static void onSignal(launch::Supervisor &supervisor, Output &errors, int signal, bool &asked)
{
    if (signal == SIGINT && !asked)
        errors.line("Stopping one or two steps on, where all ranks can, with a checkpoint. Ctrl+C again ends at once.");
    if (signal == SIGTERM && asked)
        return;
    asked = true;
    supervisor.interrupt();
}

static int exitCodeOf(const launch::Supervisor &supervisor)
{
    if (supervisor.status().failure)
        return kJobFailed;
    return supervisor.interrupted() ? kInterrupted : kDone;
}

static void closeRecord(SupervisorRecorder &recorder, int exitCode, Output &errors)
{
    const bool recorded = recorder.problem().empty();
    recorder.close(exitCode);
    if (recorded && !recorder.problem().empty())
        errors.line("The record of commands and deaths is not whole: " + recorder.problem());
}

static int supervise(PreparedRun prepared, const RunOptions &options, const std::vector<std::string> &command)
{
    Output out(STDOUT_FILENO);
    Output errors(STDERR_FILENO);
    for (const std::string &note : prepared.notes)
        errors.line(note);
    const run::RunFolder folder = prepared.plan.folder;
    const int attempt = prepared.plan.attempt;
    const int64_t originNs = run::readOriginNs(folder).value_or(0);
    SupervisorRecorder recorder(folder, attempt, originNs, joined(command));
    if (!recorder.problem().empty())
        errors.line("Commands and deaths are not recorded: " + recorder.problem());

    launch::Supervisor supervisor(std::move(prepared.plan), std::move(prepared.lock), recorder);
    RunPrinter printer(out, options.format);
    QObject::connect(&supervisor, &launch::Supervisor::stepDone, [&](const auto &status) { printer.step(status); });
    QObject::connect(&supervisor, &launch::Supervisor::stateChanged,
                     [&](const auto &status) { printer.state(status); });
    QObject::connect(&supervisor, &launch::Supervisor::message,
                     [&](const QString &text) { printer.message(text.toStdString()); });
    QObject::connect(&supervisor, &launch::Supervisor::ending,
                     [&] { closeRecord(recorder, exitCodeOf(supervisor), errors); });
    QObject::connect(&supervisor, &launch::Supervisor::finished, qApp, &QCoreApplication::quit, Qt::QueuedConnection);

    launch::SignalWatcher signals;
    bool asked = false;
    QObject::connect(&signals, &launch::SignalWatcher::received,
                     [&](int signal) { onSignal(supervisor, errors, signal, asked); });
    printer.begun(folder, attempt);
    if (auto started = supervisor.start(); !started) {
        recorder.close(kJobFailed);
        return failWith(kJobFailed, started.error().text);
    }
    QCoreApplication::exec();
    printer.ended(folder, supervisor.status());
    if (supervisor.status().failure)
        errors.result(failureText(folder, supervisor.status()));
    return exitCodeOf(supervisor);
}

int runCommand(const RunOptions &options, const std::vector<std::string> &command)
{
    const launch::Environment environment = launch::processEnvironment();
    auto prepared = prepareRun(options, command, environment);
    if (!prepared)
        return failWith(prepared.error().text == data::kCancelled ? kInterrupted : kWrongInput, prepared.error().text);
    // Qt wants a UTF-8 locale and complains of others on standard error. Ranks keep the user's: `environment`.
    ::setenv("LC_ALL", "C.UTF-8", 1);
    int argc = 1;
    char name[] = "shardscope-cli";
    char *argv[] = {name, nullptr};
    const QCoreApplication application(argc, argv);
    return supervise(std::move(*prepared), options, command);
}

} // namespace shardscope::cli
