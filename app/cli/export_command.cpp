// SPDX-License-Identifier: Apache-2.0
// export: a run's weights as a folder that other programs open.
#include "app/cli/cancel_signals.h"
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/files/checkpoint_folder.h"
#include "core/pretrained/export_checkpoint.h"

#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::cli {

/// The checkpoint of that step; 0: the newest whole one.
static Result<fs::path> checkpointToExport(const run::RunFolder &folder, int64_t step)
{
    const files::CheckpointFolder checkpoints(folder.checkpointsFolder());
    std::vector<std::string> steps;
    for (const files::CheckpointInfo &checkpoint : checkpoints.whole()) {
        if (checkpoint.step == step)
            return checkpoint.path;
        steps.push_back(std::to_string(checkpoint.step));
    }
    if (steps.empty())
        return fail("The run {} has no whole checkpoint. One that goes on writes one with: shardscope-cli checkpoint "
                    "\"{}\". One that does its last step leaves one, unless checkpoint.at_end is false.",
                    folder.name(), argumentFor(folder));
    if (step != 0)
        return fail("The run {} has no checkpoint of step {}. There are: {}.", folder.name(), step,
                    fmt::join(steps, ", "));
    return checkpoints.newest()->path;
}

/// Absolute, and without a slash at its end.
static Result<fs::path> targetOf(const std::string &out)
{
    return absolutePath(out).map([](const fs::path &path) { return path.has_filename() ? path : path.parent_path(); });
}

static pretrained::ExportFormat formatOf(const ExportOptions &options)
{
    return options.format == "adapter" ? pretrained::ExportFormat::Adapter : pretrained::ExportFormat::HuggingFace;
}

static Result<> writeExport(const fs::path &checkpoint, const fs::path &target, const ExportOptions &options,
                            const CancelSignals &signals)
{
    Output errors(STDERR_FILENO);
    pretrained::ExportOptions exporting;
    exporting.format = formatOf(options);
    if (!options.dtype.empty())
        exporting.type = options.dtype == "bfloat16" ? files::TensorType::Bf16 : files::TensorType::F32;
    exporting.progress = [&](int64_t doneBytes, int64_t totalBytes) {
        errors.progress(fmt::format("{} of {}", formatBytes(doneBytes), formatBytes(totalBytes)));
        return !signals.asked();
    };
    auto result = pretrained::exportCheckpoint(checkpoint, target, exporting);
    errors.progress("");
    return result;
}

int exportCommand(const ExportOptions &options)
{
    const auto folder = run::findRun(options.run, runsDirectory());
    if (!folder)
        return failWith(kWrongInput, folder.error().text);
    const auto target = targetOf(options.out);
    if (!target)
        return failWith(kWrongInput, target.error().text);
    if (const auto free = pretrained::checkExportTarget(*target); !free)
        return failWith(kWrongInput, free.error().text);
    const auto checkpoint = checkpointToExport(*folder, options.step);
    if (!checkpoint)
        return failWith(kWrongInput, checkpoint.error().text);
    if (const auto can = pretrained::checkExportFormat(*checkpoint, formatOf(options)); !can)
        return failWith(kWrongInput, can.error().text);
    const CancelSignals signals;
    if (const auto done = writeExport(*checkpoint, *target, options, signals); !done)
        return failWith(signals.asked() ? kInterrupted : kJobFailed, done.error().text);
    Output(STDOUT_FILENO).result(target->string());
    return kDone;
}

} // namespace shardscope::cli
