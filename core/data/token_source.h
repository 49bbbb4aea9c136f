// SPDX-License-Identifier: Apache-2.0
// From what a user named to a checked sequence of tokens. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/dataset_options.h"
#include "core/data/token_store.h"

#include <string>

namespace shardscope::data {

struct TokenSource
{
    TokenStore store;
    std::string name;      ///< "text file /x/y.txt"
    std::string kind;      ///< "bytes", "uint16", "by /x/tokenizer.json"
    std::string remarks;   ///< "; left out: 1 empty file", or nothing
    int64_t sizeBytes = 0; ///< of the files that the user named
    uint64_t xxh3 = 0;     ///< of the tokens
};

/// Texts are tokenised where no cache has their tokens. Every id is below the vocabulary.
Result<TokenSource> openTokens(const DatasetOptions &options);

/// The name of texts that openTokens() would have to tokenise first, where everything that this needs is there;
/// nothing where it need not.
Result<std::optional<std::string>> textsToTokenise(const DatasetOptions &options);

} // namespace shardscope::data
