// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdlib.h>
#include <string>

namespace shardscope::test {

/// A new folder for one test, removed at its end. The name has what names of folders can have.
class TemporaryFolder
{
public:
    TemporaryFolder()
    {
        std::string pattern = (std::filesystem::temp_directory_path() / "shardscope 'ü\" 語-XXXXXX").string();
        m_path = ::mkdtemp(pattern.data());
    }
    ~TemporaryFolder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    const std::filesystem::path &path() const { return m_path; }

private:
    std::filesystem::path m_path;
};

} // namespace shardscope::test
