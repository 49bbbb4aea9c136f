// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <vector>

namespace shardscope {

/// The folders above something that is yet to be made. If that fails, those that were made for it go again.
class ParentFolders
{
public:
    /// Makes what is not there yet above the path. An error, and nothing left, where one can't be made.
    static Result<ParentFolders> makeAbove(const std::filesystem::path &path);
    /// Removes those it made that are empty (somebody else may have put something there meanwhile), unless keep() was
    /// called.
    ~ParentFolders();
    ParentFolders(ParentFolders &&other) noexcept;
    ParentFolders &operator=(ParentFolders &&) = delete;

    void keep() { m_made.clear(); }

private:
    ParentFolders() = default;

    std::vector<std::filesystem::path> m_made; ///< the uppermost first
};

} // namespace shardscope
