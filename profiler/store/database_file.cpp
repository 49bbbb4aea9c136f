// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/database_file.h"

#include "profiler/store/limits.h"
#include "profiler/store/live_copy.h"
#include "profiler/store/rows.h"
#include "profiler/store/sqlite_error.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace shardscope::store {
namespace {

/// Copying takes this share of the time at most.
constexpr int kCopyShare = 10;

int isCancelled(void *token)
{
    return static_cast<const CancelToken *>(token)->cancelled() ? 1 : 0;
}

/// By the rights in force, of files that exist. Opening them to find out would drop SQLite's locks.
bool isReadOnly(const std::filesystem::path &path)
{
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT;
}

} // namespace

DatabaseFile::DatabaseFile(std::filesystem::path path, std::filesystem::path cacheFolder)
    : m_path(std::move(path))
    , m_cacheFolder(std::move(cacheFolder))
    , m_readable(m_path)
{
}

DatabaseFile::~DatabaseFile()
{
    m_connection.reset();
    if (!m_copyFolder.empty()) {
        std::error_code ignored;
        std::filesystem::remove_all(m_copyFolder, ignored);
    }
}

std::string DatabaseFile::signature() const
{
    return signatureOf(m_path) + "," + signatureOf(logOf(m_path));
}

bool DatabaseFile::folderIsWritable() const
{
    const std::string path = m_path.string();
    return !isReadOnly(m_path.parent_path()) && !isReadOnly(path + "-shm") && !isReadOnly(path + "-wal");
}

bool DatabaseFile::copyIsDue() const
{
    if (signature() == m_copiedSignature)
        return false;
    // Without a log nobody writes any more.
    std::error_code error;
    return !std::filesystem::exists(logOf(m_path), error) || std::chrono::steady_clock::now() >= m_nextCopy;
}

Result<> DatabaseFile::copy()
{
    const auto start = std::chrono::steady_clock::now();
    auto copied = copyOnce();
    const auto now = std::chrono::steady_clock::now();
    m_nextCopy = now + std::max<std::chrono::steady_clock::duration>(kCopyInterval, kCopyShare * (now - start));
    m_copyProblem = copied ? std::string() : copied.error().text;
    return copied;
}

/// The copy before this one stays until the new one is whole.
Result<> DatabaseFile::copyOnce()
{
    std::error_code error;
    if (m_copyFolder.empty()) {
        std::filesystem::create_directories(m_cacheFolder / "copies", error);
        std::string pattern = (m_cacheFolder / "copies" / "XXXXXX").string();
        if (!mkdtemp(pattern.data())) {
            return fail("{} is in a folder that is not writable and has to be copied, but {} can't be made: {}.",
                        m_path.string(), pattern, std::strerror(errno));
        }
        m_copyFolder = pattern;
    }
    const std::string before = signature();
    const std::filesystem::path fresh = m_copyFolder / "new.sqlite";
    const std::filesystem::path copy = m_copyFolder / m_path.filename();
    if (auto copied = copyLiveDatabase(m_path, fresh); !copied)
        return copied;
    m_connection.reset();
    std::filesystem::remove(copy.string() + "-shm", error);
    std::filesystem::remove(logOf(copy), error);
    std::filesystem::rename(logOf(fresh), logOf(copy), error); // where there is one
    std::filesystem::rename(fresh, copy, error);
    if (error)
        return fail("Can't make {}: {}.", copy.string(), error.message());
    m_readable = copy;
    m_copiedSignature = before;
    return {};
}

tl::expected<void, FileError> DatabaseFile::prepare()
{
    const auto unreadable = [](std::string text) {
        return tl::unexpected(FileError{FileTrouble::Unreadable, std::move(text)});
    };
    // Where it can't be renewed now, the copy that is there is the recording as it was a little earlier.
    if (readsCopy() && copyIsDue())
        (void)copy();
    for (bool again = true;; again = false) {
        try {
            return checkVersion();
        } catch (const SQLite::Exception &exception) {
            // What SQLite says where it can't make or use the `-shm` of a database that has a log.
            const int code = exception.getErrorCode();
            if (!again || readsCopy() || (code != SQLITE_CANTOPEN && code != SQLITE_READONLY))
                return unreadable(explain(m_path, exception));
        }
        m_connection.reset();
        // Where it may make it, it met a writer that was just opening or closing: the same once more.
        if (folderIsWritable())
            continue;
        if (!m_copyProblem.empty() && std::chrono::steady_clock::now() < m_nextCopy)
            return unreadable(m_copyProblem);
        if (auto copied = copy(); !copied)
            return unreadable(copied.error().text);
    }
}

tl::expected<void, FileError> DatabaseFile::checkVersion()
{
    Access access(*this, nullptr);
    SQLite::Database &database = access.database();
    const int application = database.execAndGet("PRAGMA application_id").getInt();
    const int version = database.execAndGet("PRAGMA user_version").getInt();
    if (application != kApplicationId) {
        const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
        if (empty)
            return tl::unexpected(FileError{FileTrouble::NotReady, fmt::format("{} is still empty.", m_path.string())});
        return tl::unexpected(
            FileError{FileTrouble::Unreadable,
                      fmt::format("{} is a database, but not a recording of Shardscope.", m_path.string())});
    }
    if (version > kSchemaVersion) {
        return tl::unexpected(
            FileError{FileTrouble::Newer, fmt::format("{} was written by a newer Shardscope (schema version {}); this "
                                                      "one reads up to version {}. Update it to open this recording.",
                                                      m_path.string(), version, kSchemaVersion)});
    }
    return {};
}

void DatabaseFile::open()
{
    // A copy is our own: it is opened for writing, so that SQLite can bring its log in order.
    const int flags = (readsCopy() ? SQLite::OPEN_READWRITE : SQLite::OPEN_READONLY) | SQLite::OPEN_NOMUTEX;
    auto connection = std::make_unique<SQLite::Database>(m_readable.string(), flags, kReaderBusyTimeoutMs);
    m_mayBeWritten = !readsCopy() && connection->execAndGet("PRAGMA journal_mode").getString() == std::string("wal");
    m_connection = std::move(connection);
}

DatabaseFile::Access::Access(DatabaseFile &file, const CancelToken *cancel)
    : m_file(file)
{
    if (!file.m_connection)
        file.open();
    if (cancel) {
        sqlite3_progress_handler(file.m_connection->getHandle(), kCancelEvery, isCancelled,
                                 const_cast<CancelToken *>(cancel));
    }
}

DatabaseFile::Access::~Access()
{
    sqlite3_progress_handler(m_file.m_connection->getHandle(), 0, nullptr, nullptr);
    if (m_file.m_mayBeWritten)
        m_file.m_connection.reset();
}

} // namespace shardscope::store
