// SPDX-License-Identifier: Apache-2.0
#include "tests/base/failing_close.h"

#include <atomic>
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

static std::atomic<bool> failing = false;

namespace shardscope::test {

FailingClose::FailingClose()
{
    failing = true;
}

FailingClose::~FailingClose()
{
    failing = false;
}

} // namespace shardscope::test

extern "C" int close(int fd)
{
    const auto closed = static_cast<int>(::syscall(SYS_close, fd));
    if (closed != 0 || !failing)
        return closed;
    errno = ENOSPC;
    return -1;
}
