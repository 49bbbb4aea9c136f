// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/checkpoint_folder.h"
#include "core/run/run_folder.h"
#include "core/run/run_status.h"
#include "tests/support/temporary_folder.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shardscope::test {

struct Finished
{
    int exitCode = -1; ///< -1: a signal ended it, or it did not end in time
    int signal = 0;
    std::string out;
    std::string errors;
};

/// A program that a test starts, with its output in files. Killed at the end of the test if it still runs.
class Program
{
public:
    using Variables = std::map<std::string, std::string>;
    /// Variables are added to the test's own. A terminal is a file descriptor for input, output and errors.
    Program(const std::filesystem::path &program, const std::vector<std::string> &arguments, const Variables &variables,
            const std::filesystem::path &outputFolder, int terminal = -1);
    ~Program();
    Program(Program &&other) noexcept;
    Program(const Program &) = delete;

    pid_t pid() const { return m_pid; }
    void signal(int number) const;
    /// Patience is for a machine that is busy with something else: it costs nothing where all is well.
    Finished wait(std::chrono::seconds patience = std::chrono::seconds(120));
    std::string outputSoFar() const;
    std::string errorsSoFar() const;

private:
    pid_t m_pid = -1;
    std::filesystem::path m_out;
    std::filesystem::path m_errors;
};

/// Where the programs are: SHARDSCOPE_BIN, or the folder of this test.
std::filesystem::path binFolder();

/// Waits until the condition holds; false after `patience`.
bool eventually(const std::function<bool()> &condition, std::chrono::seconds patience = std::chrono::seconds(60));

/// A home of its own for shardscope-cli, with odd characters in its path.
class CommandLine
{
public:
    CommandLine();
    /// For all programs started from now on.
    void set(const std::string &variable, const std::string &value) { m_variables[variable] = value; }
    const Program::Variables &variables() const { return m_variables; }
    Program start(const std::vector<std::string> &arguments, int terminal = -1);
    /// By another program, such as unshare, that takes the command to start after its own words.
    Program startThrough(std::vector<std::string> wrapper, const std::vector<std::string> &arguments);
    Finished run(const std::vector<std::string> &arguments) { return start(arguments).wait(); }
    std::filesystem::path folder() const { return m_temporary.path(); }
    std::filesystem::path runs() const { return m_temporary.path() / "data" / "shardscope" / "runs"; }
    run::RunFolder runFolder(const std::string &name) const { return run::RunFolder(runs() / name); }
    std::optional<files::CheckpointInfo> newestCheckpoint(const std::string &name) const
    {
        return files::CheckpointFolder(runFolder(name).checkpointsFolder()).newest();
    }
    /// The status of a run, once it satisfies the condition; the last one seen after the patience is over.
    run::RunStatus waitFor(const std::string &name, const std::function<bool(const run::RunStatus &)> &condition,
                           std::chrono::seconds patience = std::chrono::seconds(60)) const;

private:
    TemporaryFolder m_temporary;
    Program::Variables m_variables;
    int m_started = 0;
};

} // namespace shardscope::test
