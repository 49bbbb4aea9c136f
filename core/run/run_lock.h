// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/run/run_folder.h"

namespace shardscope::run {

/// The right to run a run: flock on <run>/lock, held while this object lives. The file descriptor is closed on exec, so
/// that ranks do not inherit the lock and outlive their supervisor with it.
class RunLock
{
public:
    /// Error where another process holds it, naming the run.
    static Result<RunLock> acquire(const RunFolder &folder);
    ~RunLock();
    RunLock(RunLock &&other) noexcept;
    RunLock &operator=(RunLock &&other) noexcept;
    RunLock(const RunLock &) = delete;
    RunLock &operator=(const RunLock &) = delete;

private:
    explicit RunLock(int fd)
        : m_fd(fd)
    {
    }
    int m_fd = -1;
};

/// True where some process holds the lock. False without a lock file.
bool isLocked(const RunFolder &folder);

} // namespace shardscope::run
