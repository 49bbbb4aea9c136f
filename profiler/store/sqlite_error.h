// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <string>

namespace shardscope::store {

/// What an exception of SQLite means to a user: what is wrong with which file, and what to do.
std::string explain(const std::filesystem::path &path, const SQLite::Exception &exception);

} // namespace shardscope::store
