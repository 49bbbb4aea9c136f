// SPDX-License-Identifier: Apache-2.0
#include "core/base/parent_folders.h"

#include <algorithm>
#include <utility>

namespace shardscope {

namespace fs = std::filesystem;

Result<ParentFolders> ParentFolders::makeAbove(const fs::path &path)
{
    std::error_code error;
    std::vector<fs::path> lacking;
    for (fs::path above = path.parent_path(); above.has_relative_path() && !fs::exists(above, error);
         above = above.parent_path())
        lacking.push_back(above);
    std::reverse(lacking.begin(), lacking.end());
    ParentFolders parents;
    for (const fs::path &folder : lacking) {
        if (fs::create_directory(folder, error))
            parents.m_made.push_back(folder);
        else if (error)
            return fail("Can't make the folder {}: {}.", folder.string(), error.message());
    }
    return parents;
}

ParentFolders::ParentFolders(ParentFolders &&other) noexcept
    : m_made(std::exchange(other.m_made, {}))
{
}

ParentFolders::~ParentFolders()
{
    std::error_code ignored;
    for (auto folder = m_made.rbegin(); folder != m_made.rend(); ++folder)
        fs::remove(*folder, ignored);
}

} // namespace shardscope
