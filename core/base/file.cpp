// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace shardscope {

Result<std::string> readTextFile(const std::filesystem::path &path)
{
    std::ifstream in(path, std::ios::binary);
    if (!in)
        return fail("Can't read {}: {}.", path.string(), std::strerror(errno));
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (in.bad())
        return fail("Can't read {}: {}.", path.string(), std::strerror(errno));
    return text;
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
    ::close(fd);
    if (!error && ::rename(beside.c_str(), path.c_str()) != 0)
        error = errno;
    if (error) {
        ::unlink(beside.c_str());
        return fail("Can't write {}: {}.", path.string(), std::strerror(error));
    }
    return lasting ? syncFolder(path.has_parent_path() ? path.parent_path() : ".") : Result<>{};
}

} // namespace shardscope
