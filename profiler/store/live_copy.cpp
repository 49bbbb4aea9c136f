// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/live_copy.h"

#include <chrono>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace fs = std::filesystem;

namespace shardscope::store {

static constexpr int kTries = 5;
/// Longer than between two ticks of the clock that files are dated by: two writes in one tick have one date.
static constexpr auto kTick = std::chrono::milliseconds(15);

fs::path logOf(const fs::path &database)
{
    return database.string() + "-wal";
}

std::string signatureOf(const fs::path &path)
{
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (error)
        return "absent";
    const auto time = fs::last_write_time(path, error).time_since_epoch().count();
    return fmt::format("{}@{}", size, time);
}

Result<> copyPlainFile(const fs::path &from, const fs::path &to)
{
    std::error_code error;
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error)
        return fail("Can't copy {} to {}: {}.", from.string(), to.string(), error.message());
    // The copy keeps the rights of a file that may have been read-only.
    fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
    return {};
}

/// Its salts differ each time that the log begins anew. Empty where there is no log.
static std::string headerOf(const fs::path &log)
{
    static constexpr size_t kHeaderBytes = 32;
    std::string header(kHeaderBytes, '\0');
    std::ifstream in(log, std::ios::binary);
    in.read(header.data(), static_cast<std::streamsize>(header.size()));
    header.resize(static_cast<size_t>(in.gcount()));
    return header;
}

/// What must not change while database and log are copied. Commits only append to the log, and of a log that was cut
/// short SQLite takes what is whole. A checkpoint writes the database: older pages of the copied log would come to lie
/// over newer ones. So would they where the log began anew, over frames that were checkpointed before.
static std::string fixedPart(const fs::path &database)
{
    return signatureOf(database) + headerOf(logOf(database));
}

static Result<> copyOnce(const fs::path &database, const fs::path &to, const CopyFile &copyFile)
{
    std::error_code error;
    for (const fs::path &old : {logOf(to), fs::path(to.string() + "-shm")})
        fs::remove(old, error);
    if (fs::exists(logOf(database), error)) {
        // A writer that ends removes its log: what it held is in the database then.
        if (auto copied = copyFile(logOf(database), logOf(to)); !copied && fs::exists(logOf(database), error))
            return copied;
    }
    return copyFile(database, to);
}

Result<> copyLiveDatabase(const fs::path &database, const fs::path &to, const CopyFile &copyFile)
{
    for (int attempt = 0; attempt < kTries; ++attempt) {
        const std::string before = fixedPart(database);
        std::this_thread::sleep_for(kTick);
        if (auto copied = copyOnce(database, to, copyFile); !copied)
            return copied;
        if (fixedPart(database) == before)
            return {};
    }
    return fail("{} can only be read as a copy, and it was changed while it was copied, {} times: it is being written "
                "to. Try again.",
                database.string(), kTries);
}

} // namespace shardscope::store
