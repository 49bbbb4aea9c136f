// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_cache.h"

#include "core/base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::data {

namespace fs = std::filesystem;

namespace {

constexpr size_t kBufferBytes = 1024 * 1024;
constexpr std::string_view kPartial = ".partial";

tl::unexpected<Error> cannotWriteCache(const fs::path &path, int error)
{
    return fail("Can't write the tokens to {}: {}. {}", path.string(), std::strerror(error),
                error == ENOSPC || error == EDQUOT ? "Make room, or name another place in XDG_CACHE_HOME."
                                                   : "Name a folder of yours, with room, in XDG_CACHE_HOME.");
}

bool isSameFile(int fd, const fs::path &path)
{
    struct stat open
    {
    };
    struct stat named
    {
    };
    return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
           open.st_dev == named.st_dev;
}

/// What processes that were killed left behind: nobody has it locked.
void removeLeftovers(const fs::path &folder, const fs::path &own)
{
    for (const fs::path &path : entriesOf(folder)) {
        if (!path.filename().native().ends_with(kPartial) || path == own)
            continue;
        const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && isSameFile(fd, path))
            ::unlink(path.c_str());
        ::close(fd);
    }
}

} // namespace

TokenCache::TokenCache(fs::path folder, CacheKey key)
    : m_folder(std::move(folder))
    , m_key(key)
{
}

fs::path TokenCache::file() const
{
    return m_folder / fmt::format("{:016x}{:016x}.bin", m_key[0], m_key[1]);
}

std::optional<BinFile> TokenCache::find() const
{
    auto found = openBinFile(file(), 0, 0);
    if (!found || !found->header || !found->header->cache || found->header->cache->key != m_key)
        return std::nullopt;
    return std::move(*found);
}

void TokenCache::remove() const
{
    std::error_code ignored; // a writer replaces it in any case
    fs::remove(file(), ignored);
}

Result<std::unique_ptr<TokenCache::Writer>> TokenCache::tryWrite(TokenWidth width) const
{
    std::error_code error;
    fs::create_directories(m_folder, error);
    if (error)
        return cannotWriteCache(m_folder, error.value());
    fs::path partial = m_folder / ("." + file().stem().native() + std::string(kPartial));
    int fd = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return cannotWriteCache(partial, errno);
    bool locked = true;
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int reason = errno;
        ::close(fd);
        if (reason == EWOULDBLOCK || reason == EINTR)
            return nullptr;
        // A file system without locks: each process writes by itself, and the last to be done wins, with equal tokens.
        partial = m_folder / fmt::format(".{}.{}{}", file().stem().native(), ::getpid(), kPartial);
        fd = ::open(partial.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
            return cannotWriteCache(partial, errno);
        locked = false;
    }
    // Its writer may have renamed or removed it between open() and flock(): then it is no longer ours to write.
    if (locked && !isSameFile(fd, partial)) {
        ::close(fd);
        return nullptr;
    }
    removeLeftovers(m_folder, partial);
    std::unique_ptr<Writer> writer(new Writer(*this, partial, fd));
    if (auto begun = writer->begin(width); !begun)
        return tl::unexpected(begun.error());
    return writer;
}

TokenCache::Writer::Writer(const TokenCache &cache, fs::path partial, int fd)
    : m_file(cache.file())
    , m_partial(std::move(partial))
    , m_key(cache.m_key)
    , m_fd(fd)
{
}

TokenCache::Writer::~Writer()
{
    if (!m_committed)
        ::unlink(m_partial.c_str()); // while it is still locked
    ::close(m_fd);
}

Result<> TokenCache::Writer::begin(TokenWidth width)
{
    m_width = width;
    m_buffer.reserve(kBufferBytes);
    if (::ftruncate(m_fd, 0) != 0)
        return cannotWriteCache(m_partial, errno);
    m_writtenBytes = BinHeader::kBytes; // the header comes last
    return {};
}

Result<> TokenCache::Writer::writeAll(std::span<const std::byte> bytes, int64_t offset)
{
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(m_fd, bytes.data(), bytes.size(), offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return cannotWriteCache(m_partial, written < 0 ? errno : EIO);
        bytes = bytes.subspan(static_cast<size_t>(written));
        offset += written;
    }
    return {};
}

Result<> TokenCache::Writer::flush()
{
    auto written = writeAll(m_buffer, m_writtenBytes);
    m_hash.add(std::span<const std::byte>(m_buffer));
    m_writtenBytes += std::ssize(m_buffer);
    m_buffer.clear();
    return written;
}

Result<> TokenCache::Writer::add(std::span<const uint32_t> ids)
{
    for (const uint32_t id : ids) {
        if (m_width == TokenWidth::Uint16 && id > 0xFFFF)
            return fail("A tokenizer gave the id {}, which is beyond its own vocabulary.", id);
        const auto *bytes = reinterpret_cast<const std::byte *>(&id); // little-endian
        m_buffer.insert(m_buffer.end(), bytes, bytes + static_cast<size_t>(m_width));
        if (m_buffer.size() >= kBufferBytes) {
            if (auto flushed = flush(); !flushed)
                return flushed;
        }
    }
    m_tokens += std::ssize(ids);
    return {};
}

Result<> TokenCache::Writer::commit()
{
    if (auto flushed = flush(); !flushed)
        return flushed;
    const BinHeader header{m_width, m_tokens, BinHeader::Cache{m_key, m_hash.digest64(), m_malformedBytes}};
    if (auto written = writeAll(encode(header), 0); !written)
        return written;
    if (::fsync(m_fd) != 0 || ::rename(m_partial.c_str(), m_file.c_str()) != 0)
        return cannotWriteCache(m_file, errno);
    m_committed = true;
    return syncFolder(m_file.parent_path());
}

} // namespace shardscope::data
