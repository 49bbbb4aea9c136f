// SPDX-License-Identifier: Apache-2.0
#include "core/files/file_handle.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace shardscope::files {

FileHandle::~FileHandle()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

FileHandle::FileHandle(FileHandle &&other) noexcept
    : m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

FileHandle &FileHandle::operator=(FileHandle &&other) noexcept
{
    std::swap(m_descriptor, other.m_descriptor);
    return *this;
}

int writeAll(int descriptor, std::span<const std::byte> bytes, int64_t offsetBytes)
{
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), offsetBytes);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (written == 0)
            return ENOSPC;
        bytes = bytes.subspan(static_cast<size_t>(written));
        offsetBytes += written;
    }
    return 0;
}

int readAll(int descriptor, std::span<std::byte> bytes, int64_t offsetBytes)
{
    while (!bytes.empty()) {
        const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), offsetBytes);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (got == 0)
            return ENODATA;
        bytes = bytes.subspan(static_cast<size_t>(got));
        offsetBytes += got;
    }
    return 0;
}

tl::unexpected<Error> writeError(const std::filesystem::path &path, int error)
{
    const char *remedy = "";
    if (error == ENOSPC || error == EDQUOT)
        remedy = " Free some space.";
    else if (error == EFBIG)
        remedy = " The limit of a file's size (ulimit -f) is too small.";
    return fail("Can't write {}: {}.{}", path.string(), std::strerror(error), remedy);
}

} // namespace shardscope::files
