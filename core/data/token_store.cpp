// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_store.h"

#include "core/data/unreadable.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::data {

namespace {

// A process may have 65,530 mappings (vm.max_map_count), and each costs at least a page: only files worth one get one.
constexpr int64_t kSmallestMappingBytes = 64 * 1024;
constexpr int64_t kMostMappings = 16 * 1024;

class FileHandle
{
public:
    explicit FileHandle(const std::filesystem::path &path)
        : m_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))
    {
    }
    ~FileHandle()
    {
        if (m_fd >= 0)
            ::close(m_fd);
    }
    FileHandle(const FileHandle &) = delete;
    FileHandle &operator=(const FileHandle &) = delete;
    int fd() const { return m_fd; }

private:
    int m_fd;
};

Result<std::shared_ptr<const void>> mapFile(const TokenFile &file, int fd)
{
    const auto sizeBytes = static_cast<size_t>(file.sizeBytes);
    void *memory = ::mmap(nullptr, sizeBytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return unreadable(file.path, errno);
    return std::shared_ptr<const void>(memory, [sizeBytes](void *mapped) { ::munmap(mapped, sizeBytes); });
}

Result<> copyFile(const TokenFile &file, int fd, std::byte *to)
{
    for (int64_t done = 0; done < file.sizeBytes;) {
        const ssize_t got = ::pread(fd, to + done, static_cast<size_t>(file.sizeBytes - done), done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return unreadable(file.path, got < 0 ? errno : EIO);
        done += got;
    }
    return {};
}

} // namespace

Result<TokenStore> TokenStore::open(const std::vector<TokenFile> &files, TokenWidth width,
                                    std::optional<uint8_t> separator)
{
    int64_t totalBytes = 0;
    for (const TokenFile &file : files)
        totalBytes += file.sizeBytes;
    const int64_t mappedFrom = std::max(kSmallestMappingBytes, totalBytes / kMostMappings);
    int64_t copiedBytes = 0;
    for (const TokenFile &file : files)
        copiedBytes += file.sizeBytes < mappedFrom ? file.sizeBytes : 0;

    TokenStore store;
    store.m_width = width;
    // The separator lies once, behind the copies.
    const auto copies = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(copiedBytes) + 1);
    store.m_memory.push_back(copies);
    std::byte *nextCopy = copies->data();
    copies->back() = static_cast<std::byte>(separator.value_or(0));
    for (size_t i = 0; i < files.size(); ++i) {
        const TokenFile &file = files[i];
        const FileHandle handle(file.path);
        struct stat status
        {
        };
        if (handle.fd() < 0 || ::fstat(handle.fd(), &status) != 0)
            return unreadable(file.path, errno);
        if (status.st_size != file.sizeBytes)
            return fail("{} changed while it was being read. Give a copy that nothing writes to.", file.path.string());
        const std::byte *start = nextCopy;
        if (file.sizeBytes < mappedFrom) {
            if (const auto copied = copyFile(file, handle.fd(), nextCopy); !copied)
                return tl::unexpected(copied.error());
            nextCopy += file.sizeBytes;
        } else {
            auto mapped = mapFile(file, handle.fd());
            if (!mapped)
                return tl::unexpected(mapped.error());
            start = static_cast<const std::byte *>(mapped->get());
            store.m_memory.push_back(std::move(*mapped));
        }
        const int64_t tokens = (file.sizeBytes - file.headerBytes) / static_cast<int64_t>(width);
        if (tokens <= 0)
            continue;
        if (separator && !store.m_segments.empty())
            store.append({&copies->back(), 1}, i);
        store.append({start + file.headerBytes, static_cast<size_t>(tokens * static_cast<int64_t>(width))}, i);
    }
    return store;
}

void TokenStore::append(std::span<const std::byte> bytes, size_t file)
{
    m_segments.push_back({bytes, m_tokens, file});
    m_tokens += static_cast<int64_t>(bytes.size()) / static_cast<int64_t>(m_width);
}

void TokenStore::read(int64_t first, std::span<int64_t> out) const
{
    auto segment = std::ranges::upper_bound(m_segments, first, {}, &Segment::firstToken);
    --segment; // the last one that begins at or before first
    while (!out.empty()) {
        const int64_t offset = first - segment->firstToken;
        const int64_t here = static_cast<int64_t>(segment->bytes.size()) / static_cast<int64_t>(m_width) - offset;
        const auto count = static_cast<size_t>(std::min(here, static_cast<int64_t>(out.size())));
        const std::byte *from = segment->bytes.data() + offset * static_cast<int64_t>(m_width);
        for (size_t i = 0; i < count; ++i)
            out[i] = tokenAt(from, i, m_width);
        out = out.subspan(count);
        first += static_cast<int64_t>(count);
        ++segment;
    }
}

} // namespace shardscope::data
