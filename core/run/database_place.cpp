// SPDX-License-Identifier: Apache-2.0
#include "core/run/database_place.h"

#include "core/run/places.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace shardscope::run {

std::optional<int64_t> fileSystemOf(const fs::path &folder)
{
    struct statfs info
    {
    };
    return ::statfs(folder.c_str(), &info) == 0 ? std::optional<int64_t>(info.f_type) : std::nullopt;
}

std::optional<std::string> networkFileSystem(int64_t magic)
{
    // linux/magic.h and statfs(2); the type is signed on some machines: 32 bits are compared.
    static constexpr std::pair<uint32_t, const char *> kKinds[] = {
        {0x6969, "NFS"},    {0x517b, "SMB"},      {0xff534d42, "SMB"},    {0xfe534d42, "SMB"},  {0x65735546, "FUSE"},
        {0x01021997, "9p"}, {0x00c36400, "Ceph"}, {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x5346414f, "AFS"}};
    const auto *found =
        std::ranges::find(kKinds, static_cast<uint32_t>(magic), &std::pair<uint32_t, const char *>::first);
    return found == std::end(kKinds) ? std::nullopt : std::optional<std::string>(found->second);
}

static std::optional<std::string> networkOf(const fs::path &folder, const FileSystemOf &fileSystem)
{
    const auto magic = fileSystem(folder);
    return magic ? networkFileSystem(*magic) : std::nullopt;
}

std::vector<fs::path> DatabasePlace::localFolders()
{
    std::error_code error;
    const fs::path temporary = fs::temp_directory_path(error);
    std::vector<fs::path> all = {cacheDirectory() / "recordings"};
    if (!error)
        all.push_back(temporary / fmt::format("shardscope-{}", ::getuid()) / "recordings");
    return all;
}

DatabasePlace::DatabasePlace(fs::path home)
    : m_home(std::move(home))
    , m_path(m_home)
{
}

/// A new folder for one database; nothing where `parent` is of no use.
static std::optional<fs::path> makeLocalFolder(const fs::path &parent, const FileSystemOf &fileSystem)
{
    if (!makePrivateFolder(parent.parent_path()) || !makePrivateFolder(parent) || networkOf(parent, fileSystem))
        return std::nullopt;
    std::string pattern = (parent / "recording-XXXXXX").string();
    return ::mkdtemp(pattern.data()) ? std::optional<fs::path>(pattern) : std::nullopt;
}

DatabasePlace DatabasePlace::choose(const fs::path &home, const FileSystemOf &fileSystem,
                                    const std::vector<fs::path> &candidates)
{
    DatabasePlace place(home);
    const auto kind = networkOf(home.parent_path(), fileSystem);
    if (!kind)
        return place;
    for (const fs::path &parent : candidates) {
        const auto folder = makeLocalFolder(parent, fileSystem);
        if (!folder)
            continue;
        place.m_path = *folder / home.filename();
        place.m_note =
            fmt::format("{} is on a network file system ({}): {} is written to {} and moved there at the end.",
                        home.parent_path().string(), *kind, home.filename().string(), folder->string());
        // For viewers on this machine, while it is written. Where links are not to be had, they see it at the end.
        std::error_code ignored;
        fs::create_symlink(place.m_path, home, ignored);
        return place;
    }
    place.m_note = fmt::format("{} is on a network file system ({}), and there is no local folder to record to: the "
                               "recording may be damaged or slow. Set TMPDIR to a folder on a local disk.",
                               home.parent_path().string(), *kind);
    return place;
}

static Result<> sync(const fs::path &path)
{
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0)
        ::close(fd);
    return synced ? Result<>() : fail("{}", std::system_category().message(error));
}

/// Beside its place first: who looks there sees nothing or all of it.
static Result<> copyWhole(const fs::path &from, const fs::path &to)
{
    const fs::path partial = to.parent_path() / ("." + to.filename().string() + ".partial");
    std::error_code error;
    fs::copy_file(from, partial, fs::copy_options::overwrite_existing, error);
    Result<> copied = error ? fail("{}", error.message()) : sync(partial);
    if (copied) {
        fs::rename(partial, to, error);
        if (error)
            copied = fail("{}", error.message());
    }
    if (!copied)
        fs::remove(partial, error);
    return copied;
}

Result<> DatabasePlace::moveHome()
{
    if (m_path == m_home)
        return {};
    if (auto copied = copyWhole(m_path, m_home); !copied)
        return fail("The recording could not be moved to {}: {}. It is kept in {}.", m_home.string(),
                    copied.error().text, m_path.string());
    std::error_code ignored; // a copy that is left over does no harm
    fs::remove_all(m_path.parent_path(), ignored);
    m_path = m_home;
    return {};
}

} // namespace shardscope::run
