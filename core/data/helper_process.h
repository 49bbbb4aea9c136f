// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shardscope::data {

/// A child process that is spoken to through its standard input and output. It has a process group of its own, so that
/// Ctrl+C reaches only who decides; it sees the end of its input when this process ends, however that happens. The
/// destructor kills it. For core/data's own files.
class HelperProcess
{
public:
    /// command: the program (looked for in PATH) and its arguments.
    static Result<HelperProcess> start(const std::vector<std::string> &command);
    HelperProcess(HelperProcess &&) noexcept;
    HelperProcess &operator=(HelperProcess &&) noexcept;
    ~HelperProcess();

    /// Fails with kCancelled where isCancelled (may be empty; asked five times a second) says so; otherwise says what
    /// the child wrote to standard error before it ended.
    Result<> send(std::span<const std::byte> bytes, const std::function<bool()> &isCancelled);
    /// Fills bytes.
    Result<> receive(std::span<std::byte> bytes, const std::function<bool()> &isCancelled);
    /// Up to the next line feed, without it.
    Result<std::string> receiveLine(const std::function<bool()> &isCancelled);

private:
    HelperProcess() = default;
    Result<> waitFor(short events, const std::function<bool()> &isCancelled);
    tl::unexpected<Error> ended();
    void end();

    std::string m_program;
    pid_t m_pid = -1;
    int m_socket = -1; ///< the child's standard input and output
    int m_errors = -1; ///< its standard error, in memory
};

} // namespace shardscope::data
