// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shardscope {

// Not by std::ifstream: libstdc++ throws where a read fails (a folder, a server that is gone), and has no errno to
// tell.
Result<std::string> readTextFile(const std::filesystem::path &path)
{
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail("Can't read {}: {}.", path.string(), std::strerror(errno));
    std::string text;
    int error = 0;
    for (char bytes[16384];;) {
        const ssize_t got = ::read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error = errno;
        if (got <= 0)
            break;
        text.append(bytes, static_cast<size_t>(got));
    }
    ::close(fd);
    if (error)
        return fail("Can't read {}: {}.", path.string(), std::strerror(error));
    return text;
}

Result<std::filesystem::path> absolutePath(const std::filesystem::path &path)
{
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    if (error)
        return fail("Can't tell where {} is: the current folder can't be read ({}). Change to a folder that exists, or "
                    "give a path that begins with /.",
                    path.string(), error.message());
    return whole.lexically_normal();
}

std::vector<std::filesystem::path> entriesOf(const std::filesystem::path &folder)
{
    // In a range-based for the iterator's ++ throws.
    std::vector<std::filesystem::path> entries;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        entries.push_back(entry->path());
    return entries;
}

Result<> syncFolder(const std::filesystem::path &folder)
{
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        ::close(fd);
    // Some network file systems can't sync a folder; then there is nothing more to be had.
    if (error == EINVAL || error == ENOTSUP)
        error = 0;
    if (error)
        return fail("Can't sync {}: {}.", folder.string(), std::strerror(error));
    return {};
}

Result<> writeFileAtomically(const std::filesystem::path &path, std::string_view text, Durability durability)
{
    const bool lasting = durability == Durability::Lasting;
    const std::string beside = fmt::format("{}.{}.tmp", path.string(), ::getpid());
    const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail("Can't write {}: {}.", beside, std::strerror(errno));
    int error = 0;
    while (!text.empty() && !error) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0) {
            if (errno != EINTR)
                error = errno;
            continue;
        }
        text.remove_prefix(static_cast<size_t>(written));
    }
    if (!error && lasting && ::fsync(fd) != 0)
        error = errno;
    // Network file systems and quotas may tell only now that what was written found no room.
    if (::close(fd) != 0 && !error)
        error = errno;
    if (!error && ::rename(beside.c_str(), path.c_str()) != 0)
        error = errno;
    if (error) {
        ::unlink(beside.c_str());
        return fail("Can't write {}: {}.", path.string(), std::strerror(error));
    }
    return lasting ? syncFolder(path.has_parent_path() ? path.parent_path() : ".") : Result<>{};
}

} // namespace shardscope
