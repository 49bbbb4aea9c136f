// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardscope::test {

/// While it lives, close() in this process closes and says ENOSPC, as NFS does where the server finds no room for what
/// was written. The program's own close() takes the place of the system's.
class FailingClose
{
public:
    FailingClose();
    ~FailingClose();
    FailingClose(const FailingClose &) = delete;
};

} // namespace shardscope::test
