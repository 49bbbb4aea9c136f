// SPDX-License-Identifier: Apache-2.0
// One pass over all tokens. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/token_store.h"

#include <string>
#include <vector>

namespace shardscope::data {

/// Checks that every id is below the vocabulary (the message names file, position and id) and gives the XXH3 of all
/// tokens in order, as 16 hexadecimal digits.
Result<std::string> scanTokens(const TokenStore &store, const std::vector<TokenFile> &files, int64_t vocabulary);

} // namespace shardscope::data
