// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shardscope::testing {

/// A program that runs beside the test, with its output (both streams) in a file.
class Program
{
public:
    /// `environment` is set over this process's; an empty value unsets.
    Program(std::vector<std::string> command, std::map<std::string, std::string> environment,
            std::filesystem::path output);
    ~Program();
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    /// The exit code, or 128 + signal. Kills after the patience and returns -1.
    int wait(int patienceSeconds = 60);
    void signal(int number) const;
    std::string output() const;
    /// Waits until the output holds the text; false after the patience.
    bool waitForOutput(const std::string &text, int patienceSeconds = 60) const;

private:
    pid_t m_pid = -1;
    std::filesystem::path m_output;
};

/// bin/shardscope-worker
std::string workerProgram();
/// A TCP port of 127.0.0.1 that was free a moment ago.
int freePort();

} // namespace shardscope::testing
