// SPDX-License-Identifier: Apache-2.0
// A file descriptor, and reads and writes of whole ranges of bytes.
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace shardscope::files {

/// A file descriptor that closes itself.
class FileHandle
{
public:
    explicit FileHandle(int descriptor = -1)
        : m_descriptor(descriptor)
    {
    }
    ~FileHandle();
    FileHandle(FileHandle &&other) noexcept;
    FileHandle &operator=(FileHandle &&other) noexcept;
    int get() const { return m_descriptor; }

private:
    int m_descriptor;
};

/// All of `bytes` at that place of the file, however often the system breaks it off. 0, or errno.
int writeAll(int descriptor, std::span<const std::byte> bytes, int64_t offsetBytes);
/// 0, or errno; ENODATA where the file ends before.
int readAll(int descriptor, std::span<std::byte> bytes, int64_t offsetBytes);

/// "Can't write …: No space left on device. Free some space."
tl::unexpected<Error> writeError(const std::filesystem::path &path, int error);

} // namespace shardscope::files
