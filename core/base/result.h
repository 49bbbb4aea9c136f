// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace shardscope {

/// What went wrong, in words for a user: what is wrong, where, and what to do.
struct Error
{
    std::string text;
};

template <typename T = void>
using Result = tl::expected<T, Error>;

/// `return fail("No file {}. Give --data a text file or folder.", path);`
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args &&...args)
{
    return tl::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

} // namespace shardscope
