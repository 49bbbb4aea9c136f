// SPDX-License-Identifier: Apache-2.0
// Tokens that were made from texts, kept for the next run. What has a cache file's name is whole: it is written beside,
// synced and renamed. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/bin_file.h"
#include "core/data/xxh3.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace shardscope::data {

/// What a cache was made from: texts, tokenizer, separator, and the way in which they are put together.
using CacheKey = std::array<uint64_t, 2>;

class TokenCache
{
public:
    TokenCache(std::filesystem::path folder, CacheKey key);

    /// <folder>/<32 hexadecimal digits>.bin
    std::filesystem::path file() const;
    /// Nothing where there is no cache, or one that is cut off or something else. Whether its tokens are right only a
    /// look at all of them can tell: their XXH3 is in the header.
    std::optional<BinFile> find() const;
    void remove() const;

    /// Writes a cache; one process at a time.
    class Writer
    {
    public:
        ~Writer(); ///< without commit() nothing is left
        Writer(const Writer &) = delete;
        Writer &operator=(const Writer &) = delete;

        /// Ids that are too large for the width are an error.
        Result<> add(std::span<const uint32_t> ids);
        void addMalformed(int64_t bytes) { m_malformedBytes += bytes; }
        int64_t tokens() const { return m_tokens; }
        /// Syncs and renames.
        Result<> commit();

    private:
        friend class TokenCache;
        Writer(const TokenCache &cache, std::filesystem::path partial, int fd);
        Result<> begin(TokenWidth width);
        Result<> flush();
        Result<> writeAll(std::span<const std::byte> bytes, int64_t offset);

        const std::filesystem::path m_file;
        const std::filesystem::path m_partial;
        const CacheKey m_key;
        int m_fd;
        bool m_committed = false;
        TokenWidth m_width = TokenWidth::Uint16;
        int64_t m_tokens = 0;
        int64_t m_writtenBytes = 0;
        int64_t m_malformedBytes = 0;
        Xxh3 m_hash;
        std::vector<std::byte> m_buffer;
    };
    /// A null pointer: another process is writing it.
    Result<std::unique_ptr<Writer>> tryWrite(TokenWidth width) const;

private:
    std::filesystem::path m_folder;
    CacheKey m_key;
};

} // namespace shardscope::data
