// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace shardscope::testing {

/// While it lives, rename() in this process fails with ENOSPC where the new name is `to`, as on a disk that is full at
/// the very last moment. The program's own rename() takes the place of the system's, for libstdc++ too.
class FailingRename
{
public:
    explicit FailingRename(std::string to);
    ~FailingRename();
    FailingRename(const FailingRename &) = delete;
    static int failed(); ///< renames that failed so far
};

} // namespace shardscope::testing
