// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shapes/offload_layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shardscope::engine {

/// One piece to move between host memory and a file. For O_DIRECT all three numbers are multiples of kFileBlock.
struct FilePiece
{
    bool write = false;
    int64_t offsetBytes = 0;
    std::byte *data = nullptr;
    int64_t bytes = 0;
};

inline constexpr int64_t kFileBlock = shapes::kFileBlockBytes;

/// Reads and writes of one file, many at a time. One caller at a time.
class FileTransfer
{
public:
    virtual ~FileTransfer() = default;
    /// Moves all pieces, in any order. Throws std::runtime_error where the system refuses.
    virtual void run(std::span<const FilePiece> pieces) = 0;
    /// "io_uring", "threads with pread and pwrite".
    virtual std::string name() const = 0;

    /// Through io_uring where this program was built with liburing, the kernel allows it and the file is open with
    /// O_DIRECT (what goes through the system's cache the kernel gives to threads of its own), else by threads.
    /// `problem` receives why not, or stays empty.
    static std::unique_ptr<FileTransfer> open(int file, std::string &problem);
    static std::unique_ptr<FileTransfer> byThreads(int file);
};

} // namespace shardscope::engine
