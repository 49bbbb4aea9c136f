// SPDX-License-Identifier: Apache-2.0
// analyze, sql: what profiler/analysis and profiler/store make of a recording.
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "profiler/analysis/analysis.h"
#include "profiler/store/recording.h"

#include <filesystem>
#include <unistd.h>

namespace shardscope::cli {

/// A run by name or path, or a database or folder of databases by its path.
static Result<store::Recording> openRecording(const std::string &name)
{
    std::error_code error;
    const auto folder = run::findRun(name, runsDirectory());
    if (folder)
        return store::Recording::open(folder->root());
    if (!std::filesystem::exists(name, error))
        return tl::unexpected(folder.error());
    return store::Recording::open(name);
}

int analyzeCommand(const std::string &name, Format format)
{
    const auto recording = openRecording(name);
    if (!recording)
        return failWith(kWrongInput, recording.error().text);
    const auto analysis = analysis::analyze(*recording);
    if (!analysis)
        return failWith(kWrongInput, analysis.error().text);
    const std::string shown = run::RunFolder(name).name();
    Output(STDOUT_FILENO)
        .result(format == Format::Json ? analysis::toJson(*analysis) : analysis::toText(*analysis, shown));
    return kDone;
}

int sqlCommand(const std::string &name, const std::string &query, size_t maxRows, Format format)
{
    const auto recording = openRecording(name);
    if (!recording)
        return failWith(kWrongInput, recording.error().text);
    const auto result = recording->sql(query, maxRows);
    if (!result)
        return failWith(kWrongInput, result.error().text);
    Output(STDOUT_FILENO).result(format == Format::Json ? result->toJson() : result->toText());
    if (result->truncated && format == Format::Text)
        Output(STDERR_FILENO).line(fmt::format("Only the first {} rows are shown (--max-rows).", maxRows));
    return kDone;
}

} // namespace shardscope::cli
