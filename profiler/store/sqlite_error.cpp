// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/sqlite_error.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace shardscope::store {

std::string explain(const std::filesystem::path &path, const SQLite::Exception &exception)
{
    const std::string file = path.string();
    switch (exception.getErrorCode()) {
    case SQLITE_FULL:
        return fmt::format("The disk is full: {} can't grow. Free some space on it; what was recorded so far is kept.",
                           file);
    case SQLITE_IOERR:
        return fmt::format("Reading or writing {} failed ({}). Check the disk, or that it isn't full or unmounted.",
                           file, exception.what());
    case SQLITE_CANTOPEN:
        return fmt::format("Can't open or make {}. Check that its folder exists and that you may write there.", file);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return fmt::format("{} is not writable. Check the rights of the file and of its folder.", file);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fmt::format("{} is locked by another program. Try again when that has ended.", file);
    case SQLITE_NOTADB:
        return fmt::format("{} is not a SQLite database.", file);
    case SQLITE_CORRUPT:
        return fmt::format("{} is damaged ({}). `sqlite3 FILE .recover` may save a part of it.", file,
                           exception.what());
    default:
        return fmt::format("SQLite failed on {}: {}.", file, exception.what());
    }
}

} // namespace shardscope::store
