// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/engine/file_transfer.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace shardscope::engine {

/// A rank's states on a drive. The file has no name from the moment it is open: the system gives its space back when
/// the process ends, however it ends.
class OffloadFile
{
public:
    /// Makes the folder where it is missing, measures the drive's rate, and logs it.
    static Result<std::unique_ptr<OffloadFile>> create(const std::filesystem::path &folder, int rank);
    ~OffloadFile();

    /// Space for so many bytes, a multiple of kFileBlock, which reads as zeros. The message where the drive has no room
    /// for it names what is free.
    Result<int64_t> reserve(int64_t bytes, std::string_view what);
    /// Gives it back to the drive.
    void release(int64_t offsetBytes, int64_t bytes);

    /// A writable mapping of a range: for what happens seldom. May be used while no transfer is under way.
    Result<std::byte *> map(int64_t offsetBytes, int64_t bytes) const;
    static void unmap(std::byte *data, int64_t bytes);

    /// For one thread. What its run() throws names the file.
    std::unique_ptr<FileTransfer> transfer() const;

private:
    OffloadFile(int file, std::filesystem::path folder)
        : m_file(file)
        , m_folder(std::move(folder))
    {
    }
    Result<> measureRate(bool direct);

    int m_file = -1;
    std::filesystem::path m_folder;
    int64_t m_endBytes = 0;
    std::map<int64_t, int64_t> m_free; ///< offset → bytes, before m_endBytes
};

} // namespace shardscope::engine
