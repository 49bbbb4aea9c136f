// SPDX-License-Identifier: Apache-2.0
// One database of a recording, opened for reading. A write-ahead log needs a writable `-shm` file beside it, and
// `immutable=1` would lose what is still in the log: where the folder is not writable, database and log are copied to
// a private folder and read there. A log means that the writer goes on: copied again only now and then.
#pragma once

#include "core/base/result.h"
#include "profiler/store/cancel.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace shardscope::store {

/// Why a database is not in the catalogue.
enum class FileTrouble {
    NotReady,  ///< its writer has not made the tables yet
    Newer,     ///< of a newer schema version
    Unreadable ///< anything else
};

struct FileError
{
    FileTrouble trouble = FileTrouble::Unreadable;
    std::string text;
};

class DatabaseFile
{
public:
    /// cacheFolder: where a private folder for copies is made if one is needed.
    DatabaseFile(std::filesystem::path path, std::filesystem::path cacheFolder);
    ~DatabaseFile();
    DatabaseFile(const DatabaseFile &) = delete;
    DatabaseFile &operator=(const DatabaseFile &) = delete;

    const std::filesystem::path &path() const { return m_path; }
    /// What to open instead: the path, or that of the copy.
    const std::filesystem::path &readablePath() const { return m_readable; }

    /// Finds a way to read it, and checks its kind and version. Again after a change: a copy is renewed, but that of a
    /// database that is still written no sooner than kCopyInterval after the last, nor than ten times what that took.
    tl::expected<void, FileError> prepare();
    static constexpr std::chrono::seconds kCopyInterval{10};

    /// A connection for the length of a scope. Between scopes a database that is still written has none, so that its
    /// writer can close it into one file. Throws SQLite::Exception.
    class Access
    {
    public:
        Access(DatabaseFile &file, const CancelToken *cancel);
        ~Access();
        Access(const Access &) = delete;
        Access &operator=(const Access &) = delete;
        SQLite::Database &database() { return *m_file.m_connection; }

    private:
        DatabaseFile &m_file;
    };

    /// Size and time of database and log, as text: differs after every commit.
    std::string signature() const;

private:
    void open();
    Result<> copy();
    Result<> copyOnce();
    bool copyIsDue() const;
    bool readsCopy() const { return m_readable != m_path; }
    /// Whether SQLite may make and use what it needs beside the database.
    bool folderIsWritable() const;
    tl::expected<void, FileError> checkVersion();

    std::filesystem::path m_path;
    std::filesystem::path m_cacheFolder;
    std::filesystem::path m_readable;
    std::filesystem::path m_copyFolder; ///< empty: none was needed
    std::string m_copiedSignature;
    std::string m_copyProblem;                        ///< why the last try to copy failed
    std::chrono::steady_clock::time_point m_nextCopy; ///< while the database is written
    bool m_mayBeWritten = false;                      ///< it has a write-ahead log
    std::unique_ptr<SQLite::Database> m_connection;
};

} // namespace shardscope::store
