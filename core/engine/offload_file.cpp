// SPDX-License-Identifier: Apache-2.0
#include "core/engine/offload_file.h"

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/engine/host_buffer.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace shardscope::engine {

Result<std::unique_ptr<OffloadFile>> OffloadFile::create(const std::filesystem::path &folder, int rank)
{
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return fail("The folder {} for offload.path can't be made: {}.", folder.string(), error.message());
    const std::string path = folder / fmt::format(".offload-rank-{}-{}", rank, ::getpid());
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    ::unlink(path.c_str()); // of a process of this number that was killed between the two calls below
    int file = ::open(path.c_str(), flags | O_DIRECT, 0600);
    const bool direct = file >= 0;
    if (!direct && errno == EINVAL) {
        ::unlink(path.c_str()); // some file systems make it before they refuse
        file = ::open(path.c_str(), flags, 0600);
    }
    if (file < 0)
        return fail("There can be no file in {} for what is offloaded: {}. Set offload.path to a folder on a drive of "
                    "this machine.",
                    folder.string(), std::strerror(errno));
    ::unlink(path.c_str());
    std::unique_ptr<OffloadFile> made(new OffloadFile(file, folder));
    if (auto measured = made->measureRate(direct); !measured)
        return tl::unexpected(measured.error());
    return made;
}

OffloadFile::~OffloadFile()
{
    ::close(m_file);
}

Result<> OffloadFile::measureRate(bool direct)
{
    std::string problem;
    const auto transfer = FileTransfer::open(m_file, problem);
    auto buffer = HostBuffer::allocate(shapes::kMeasuredFileBytes, false, "measuring the drive");
    if (!buffer)
        return tl::unexpected(buffer.error());
    std::memset(buffer->data(), 0x5A,
                static_cast<size_t>(shapes::kMeasuredFileBytes)); // drives make zeros faster than they are
    const auto offset = reserve(shapes::kMeasuredFileBytes, "measuring the drive");
    if (!offset)
        return tl::unexpected(offset.error());
    const auto secondsOf = [&](bool write) {
        const FilePiece piece{write, *offset, buffer->data(), shapes::kMeasuredFileBytes};
        const int64_t beganNs = monotonicNs();
        transfer->run({&piece, 1});
        return static_cast<double>(monotonicNs() - beganNs) / 1e9;
    };
    try {
        const double writing = secondsOf(true);
        const double reading = secondsOf(false);
        const double megabytes = static_cast<double>(shapes::kMeasuredFileBytes) / 1e6;
        spdlog::info("Offload to {}: {:.0f} MB/s written, {:.0f} MB/s read, through {}{}.", m_folder.string(),
                     megabytes / writing, megabytes / reading, transfer->name(),
                     direct ? "" : " and the system's cache");
    } catch (const std::exception &error) {
        return fail("The drive of {} can't be used for what is offloaded. {}", m_folder.string(), error.what());
    }
    if (!problem.empty())
        spdlog::warn("Offload to {} reads and writes by {}, because {}.{}", m_folder.string(), transfer->name(),
                     problem,
                     direct ? ""
                            : " It goes through the system's cache, which takes of the host's memory. Set offload.path "
                              "to a folder on another file system.");
    release(*offset, shapes::kMeasuredFileBytes);
    return {};
}

/// The system's error, or 0. A file system that can't set space aside makes the file longer, and may lack it later.
static int allocate(int file, int64_t offsetBytes, int64_t bytes)
{
    if (::fallocate(file, 0, offsetBytes, bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return errno;
    struct stat now
    {
    };
    if (::fstat(file, &now) != 0)
        return errno;
    return now.st_size >= offsetBytes + bytes || ::ftruncate(file, offsetBytes + bytes) == 0 ? 0 : errno;
}

Result<int64_t> OffloadFile::reserve(int64_t bytes, std::string_view what)
{
    auto place = m_free.begin();
    while (place != m_free.end() && place->second < bytes)
        ++place;
    const int64_t offset = place == m_free.end() ? m_endBytes : place->first;
    struct statvfs drive
    {
    };
    const bool known = ::fstatvfs(m_file, &drive) == 0;
    const int64_t freeBytes = known ? static_cast<int64_t>(drive.f_bavail * drive.f_frsize) : 0;
    // Asked before, because a drive that is filled to the brim ails everybody on it.
    const bool fits = !known || freeBytes > bytes;
    if (const int error = fits ? allocate(m_file, offset, bytes) : ENOSPC; error != 0) {
        if (fits) // what it had got of it
            ::fallocate(m_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
        return fail("The drive of {} has no room for {} of {}: {}{}. Make room there, set offload.path to another "
                    "drive, or offload less.",
                    m_folder.string(), formatBytes(bytes), what, std::strerror(error),
                    known ? fmt::format(", {} are free", formatBytes(freeBytes)) : "");
    }
    if (place == m_free.end()) {
        m_endBytes += bytes;
    } else {
        const int64_t rest = place->second - bytes;
        m_free.erase(place);
        if (rest > 0)
            m_free[offset + bytes] = rest;
    }
    return offset;
}

void OffloadFile::release(int64_t offsetBytes, int64_t bytes)
{
    // A hole takes no space and reads as zeros.
    if (::fallocate(m_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offsetBytes, bytes) != 0) {
        spdlog::warn("{} of {} stay taken until this process ends, and are not used again: {}.", formatBytes(bytes),
                     m_folder.string(), std::strerror(errno));
        return;
    }
    auto added = m_free.emplace(offsetBytes, bytes).first;
    if (const auto next = std::next(added); next != m_free.end() && added->first + added->second == next->first) {
        added->second += next->second;
        m_free.erase(next);
    }
    if (added == m_free.begin())
        return;
    if (const auto before = std::prev(added); before->first + before->second == added->first) {
        before->second += added->second;
        m_free.erase(added);
    }
}

Result<std::byte *> OffloadFile::map(int64_t offsetBytes, int64_t bytes) const
{
    void *address =
        ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, m_file, offsetBytes);
    if (address == MAP_FAILED)
        return fail("{} of the offload file in {} can't be mapped: {}.", formatBytes(bytes), m_folder.string(),
                    std::strerror(errno));
    return static_cast<std::byte *>(address);
}

void OffloadFile::unmap(std::byte *data, int64_t bytes)
{
    ::msync(data, static_cast<size_t>(bytes), MS_SYNC); // what reads past the cache next finds it on the drive
    ::munmap(data, static_cast<size_t>(bytes));
}

std::unique_ptr<FileTransfer> OffloadFile::transfer() const
{
    std::string known; // told when the file was made
    return FileTransfer::open(m_file, known);
}

} // namespace shardscope::engine
