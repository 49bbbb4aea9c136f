// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace shardscope::testing {

/// While it lives, temporary folders are made in memory where the machine has such a place: tests that sync hundreds of
/// files to the disk would wait for it, and a kill leaves the same there as on a disk.
class TemporaryInMemory
{
public:
    TemporaryInMemory()
    {
        std::error_code missing;
        if (const char *before = std::getenv("TMPDIR"))
            m_before = before;
        if (std::filesystem::is_directory("/dev/shm", missing))
            ::setenv("TMPDIR", "/dev/shm", 1);
    }
    ~TemporaryInMemory()
    {
        if (m_before)
            ::setenv("TMPDIR", m_before->c_str(), 1);
        else
            ::unsetenv("TMPDIR");
    }
    TemporaryInMemory(const TemporaryInMemory &) = delete;

private:
    std::optional<std::string> m_before;
};

} // namespace shardscope::testing
