// SPDX-License-Identifier: Apache-2.0
// Texts through a tokenizer, or what an earlier run has kept of that. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/bin_file.h"
#include "core/data/data_progress.h"
#include "core/data/source_files.h"
#include "core/data/token_cache.h"
#include "core/data/tokenizer_choice.h"

namespace shardscope::data {

struct TextSource
{
    const SourceFiles &sources; ///< texts, each a document
    const TokenStore &store;    ///< of these, without separators
    const TokenizerChoice &tokenizer;
};

/// The same texts, tokenizer files and settings have the same key, whatever their names and dates.
Result<CacheKey> cacheKeyOf(const TextSource &texts, const ProgressFunction &progress);

/// The cache, made where it is not there. Documents are packed one after the other with the tokenizer's separator
/// between two. While another process makes the same cache, this waits for it. Fails on an id that the model's
/// vocabulary has not, with the text's name; a failure or a cancellation leaves no file.
Result<BinFile> tokenise(const TextSource &texts, const TokenCache &cache, int64_t vocabulary,
                         const ProgressFunction &progress);

} // namespace shardscope::data
