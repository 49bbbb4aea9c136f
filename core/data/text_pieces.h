// SPDX-License-Identifier: Apache-2.0
// Long texts go to a tokenizer in pieces: memory stays bounded, threads have work, and the result is that of the whole
// text. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/tokenizer.h"

#include <string_view>

namespace shardscope::data {

/// Where a text can be cut so that the pieces' ids are the whole text's.
enum class Cut {
    AfterNewline, ///< between a line feed and a word
    AtSpace,      ///< the one space between two words, which is left out: the tokenizer puts one before every text
    BeforeSpace   ///< between a word and the one space that follows it
};

/// Tries the tokenizer on two words; the first cut that changes nothing, or AfterNewline (a few ids at the cuts may
/// then differ from the whole text's).
Result<Cut> cutFor(Tokenizer &tokenizer);

struct Piece
{
    std::string_view text;
    size_t nextOffset = 0; ///< in the text; its size: this was the last piece
};

/// The piece of text that begins at offset < text.size(): about 16 KiB, or 32 where there is no better place to cut.
/// Never inside a character of UTF-8.
Piece pieceAt(std::string_view text, size_t offset, Cut cut);

} // namespace shardscope::data
