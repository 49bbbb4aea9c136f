// SPDX-License-Identifier: Apache-2.0
// rank-N.bin of a checkpoint: a page that says whose file it is, then one rank's sections, each at a multiple of 4,096
// bytes.
#pragma once

#include "core/files/file_handle.h"
#include "core/files/manifest.h"

#include <functional>

namespace shardscope::files {

/// A checksum covers so many bytes of a section: what must be read to check a part of it.
inline constexpr int64_t kChunkBytes = int64_t{4} << 20;

/// What the first page of a rank's file says: so exchanged and foreign files are known as such.
struct FileStamp
{
    std::string checkpoint; ///< the manifest's id
    int64_t step = 0;
    int32_t rank = 0;
};

std::string rankFileName(int32_t rank);

/// Bytes [offsetBytes, offsetBytes + sizeBytes) of what is to be written, at most kChunkBytes of them; valid until the
/// next call. So what lies on a device or a disk is never whole in memory.
using PieceReader = std::function<Result<std::span<const std::byte>>(int64_t offsetBytes, int64_t sizeBytes)>;

class RankFileWriter
{
public:
    /// Creates `folder`/rank-N.bin; an older one is replaced.
    static Result<RankFileWriter> create(const std::filesystem::path &folder, const FileStamp &stamp);

    Result<> append(std::string bucket, std::string state, ElementSpan elements, int64_t elementBytes,
                    const PieceReader &read);
    Result<> appendBlob(std::string name, std::span<const std::byte> bytes);

    /// Syncs the file to the disk and says what is in it.
    Result<FileEntry> finish();

private:
    int64_t nextOffsetBytes() const;

    FileHandle m_file;
    std::filesystem::path m_path;
    FileEntry m_entry;
};

/// Opens a rank's file for reading and checks that it is of the length that its manifest names and, where the manifest
/// has an id, that rank's of that checkpoint.
Result<FileHandle> openRankFile(const std::filesystem::path &folder, const FileEntry &entry,
                                const std::string &checkpoint);

} // namespace shardscope::files
