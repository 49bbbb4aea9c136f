// SPDX-License-Identifier: Apache-2.0
// What is said of data that can't be read. For core/data's own files.
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <system_error>

namespace shardscope::data {

/// The path, the system's reason, and what a user can do about it.
inline tl::unexpected<Error> unreadable(const std::filesystem::path &path, std::error_code reason)
{
    const bool forbidden = reason == std::errc::permission_denied || reason == std::errc::operation_not_permitted;
    return fail("Can't read {}: {}. {} other data with --data.", path.string(), reason.message(),
                forbidden ? "Allow it (chmod, chown), or name" : "Name");
}

/// The same, of errno.
inline tl::unexpected<Error> unreadable(const std::filesystem::path &path, int error)
{
    return unreadable(path, std::error_code(error, std::system_category()));
}

} // namespace shardscope::data
