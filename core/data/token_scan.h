// SPDX-License-Identifier: Apache-2.0
// One pass over all tokens. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/data_progress.h"
#include "core/data/token_store.h"

#include <vector>

namespace shardscope::data {

struct TokenScan
{
    uint64_t xxh3 = 0; ///< of all tokens in order
    int64_t largest = 0;
};

inline constexpr int64_t kAnyVocabulary = int64_t{1} << 32;

/// Checks that every id is below the vocabulary (the message names file, position and id), and that a file without a
/// header, which would tell, is not of another width than it is read as.
Result<TokenScan> scanTokens(const TokenStore &store, const std::vector<TokenFile> &files, int64_t vocabulary,
                             const ProgressFunction &progress);

} // namespace shardscope::data
