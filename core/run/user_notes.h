// SPDX-License-Identifier: Apache-2.0
// user.json: what its user calls a run and noted on it.
#pragma once

#include "core/base/result.h"
#include "core/run/run_folder.h"

#include <string>
#include <vector>

namespace shardscope::run {

struct UserNotes
{
    std::string shownName; ///< empty: the folder's name
    std::string notes;
    std::vector<std::string> tags;
};

/// Empty notes where there is no file; an error where there is one that can't be read.
Result<UserNotes> readUserNotes(const RunFolder &folder);
/// Keys of user.json that this version doesn't know are kept.
Result<> writeUserNotes(const RunFolder &folder, const UserNotes &notes);

} // namespace shardscope::run
