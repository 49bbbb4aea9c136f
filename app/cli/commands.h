// SPDX-License-Identifier: Apache-2.0
// The verbs of the command line. Each returns the process's exit code and prints its results on standard output, its
// errors on standard error.
#pragma once

#include "app/cli/output.h"
#include "app/cli/run_options.h"
#include "core/control/control_client.h"
#include "core/control/protocol.h"

#include <optional>
#include <string>
#include <vector>

namespace shardscope::cli {

int runCommand(const RunOptions &options, const std::vector<std::string> &command);

/// All runs of the runs directory where no run is named.
int statusCommand(const std::string &run, Format format);
/// Follows a run until it ends. Ctrl+C leaves it, and it goes on.
int attachCommand(const std::string &run, Format format);

struct LogsOptions
{
    std::string run;
    std::optional<int> rank;    ///< nothing: all, each line with its rank before it
    std::optional<int> attempt; ///< nothing: the last one
    bool follow = false;
};
int logsCommand(const LogsOptions &options);

/// pause, unpause, checkpoint, stop: asks the run's supervisor and waits until it is done.
int controlCommand(const std::string &run, control::RequestKind kind, Format format);

struct SetOptions
{
    std::string run;
    std::vector<std::string> assignments; ///< KEY=VALUE
    std::vector<std::string> rules;       ///< PATTERN:KEY=VALUE
    bool undo = false;
    bool force = false;
    Format format = Format::Text;
};
/// Changes the configuration of a run that goes on, and waits until the change is in force.
int setCommand(const SetOptions &options);

struct ExportOptions
{
    std::string run;
    std::string format = "huggingface"; ///< or "adapter"
    std::string out;                    ///< the folder to make
    std::string dtype;                  ///< "float32", "bfloat16"; "": what the run computed in
    int64_t step = 0;                   ///< of the checkpoint; 0: the newest
};
int exportCommand(const ExportOptions &options);

int analyzeCommand(const std::string &run, Format format);
int sqlCommand(const std::string &run, const std::string &query, size_t maxRows, Format format);
int doctorCommand(Format format);

/// A connection to the run's supervisor; or, where there is none, the exit code for it once the reason is printed.
tl::expected<control::ControlClient, int> connectTo(const run::RunFolder &folder);

/// Prints "shardscope-cli: <text>" on standard error and returns the code.
int failWith(int exitCode, const std::string &text);

} // namespace shardscope::cli
