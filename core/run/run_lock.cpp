// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_lock.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace shardscope::run {

Result<RunLock> RunLock::acquire(const RunFolder &folder)
{
    const int fd = ::open(folder.lockFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail("Can't open {}: {}.", folder.lockFile().string(), std::strerror(errno));
    RunLock lock(fd);
    // isLocked() holds a shared lock for an instant: a few tries tell that from a supervisor.
    for (int attempt = 0; attempt < 20; ++attempt) {
        if (::flock(fd, LOCK_EX | LOCK_NB) == 0)
            return lock;
        if (errno != EWOULDBLOCK && errno != EINTR) {
            const int error = errno;
            ::unlink(folder.lockFile().c_str()); // where nobody can lock it, nobody has it
            return fail("Can't lock {}: {}. Runs need a file system with locks.", folder.lockFile().string(),
                        std::strerror(error));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return fail(
        "The run {} is going on already: another process holds {}. Look at it with: shardscope-cli attach \"{}\".",
        folder.name(), folder.lockFile().string(), folder.root().string());
}

RunLock::~RunLock()
{
    if (m_fd >= 0)
        ::close(m_fd);
}

RunLock::RunLock(RunLock &&other) noexcept
    : m_fd(std::exchange(other.m_fd, -1))
{
}

RunLock &RunLock::operator=(RunLock &&other) noexcept
{
    std::swap(m_fd, other.m_fd);
    return *this;
}

bool isLocked(const RunFolder &folder)
{
    const int fd = ::open(folder.lockFile().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(fd);
    return locked;
}

} // namespace shardscope::run
