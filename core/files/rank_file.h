// SPDX-License-Identifier: Apache-2.0
// rank-N.bin of a checkpoint: one rank's slices, one after the other, each at a multiple of 4,096 bytes.
#pragma once

#include "core/files/file_handle.h"
#include "core/files/manifest.h"

namespace shardscope::files {

class RankFileWriter
{
public:
    /// Creates `folder`/rank-N.bin; an older one is replaced.
    static Result<RankFileWriter> create(const std::filesystem::path &folder, int32_t rank);

    Result<> append(std::string bucket, std::string state, std::span<const std::byte> bytes);

    /// Syncs the file to the disk and says what is in it.
    Result<FileEntry> finish();

private:
    FileHandle m_file;
    std::filesystem::path m_path;
    FileEntry m_entry;
};

class RankFileReader
{
public:
    /// Checks that the file is there and of the length that its manifest names.
    static Result<RankFileReader> open(const std::filesystem::path &folder, const FileEntry &entry);

    /// Reads a section and checks its checksum; `bytes` must have the section's size.
    Result<> read(std::string_view bucket, std::string_view state, std::span<std::byte> bytes) const;

private:
    FileHandle m_file;
    std::filesystem::path m_path;
    FileEntry m_entry;
};

} // namespace shardscope::files
