// SPDX-License-Identifier: Apache-2.0
#include "tests/files/failing_rename.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::mutex mutex;
std::string failingName;
std::atomic<int> failures = 0;

bool mustFail(const char *to)
{
    const std::scoped_lock lock(mutex);
    return !failingName.empty() && failingName == to;
}

} // namespace

namespace shardscope::testing {

FailingRename::FailingRename(std::string to)
{
    const std::scoped_lock lock(mutex);
    failingName = std::move(to);
}

FailingRename::~FailingRename()
{
    const std::scoped_lock lock(mutex);
    failingName.clear();
}

int FailingRename::failed()
{
    return failures;
}

} // namespace shardscope::testing

extern "C" int rename(const char *from, const char *to) noexcept
{
    if (mustFail(to)) {
        ++failures;
        errno = ENOSPC;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
