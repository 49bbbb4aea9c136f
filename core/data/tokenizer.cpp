// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer.h"

#include "core/data/json_tokenizer.h"
#include "core/data/sentence_piece.h"

#include <cassert>

namespace shardscope::data {

Result<std::unique_ptr<Tokenizer>> openTokenizer(const TokenizerChoice &choice, const CancelFunction &isCancelled)
{
    assert(choice.kind != TokenizerKind::Bytes);
    return choice.kind == TokenizerKind::Json ? openJsonTokenizer(choice, pythons(), isCancelled)
                                              : openSentencePiece(choice);
}

tl::unexpected<Error> noSeparator(const TokenizerChoice &choice)
{
    const SeparatorChoice &wanted = choice.separator;
    if (wanted.asked)
        return fail("{} has no token {}, which data.separator names.", choice.file.string(),
                    wanted.texts.empty() ? std::to_string(wanted.id.value_or(0)) : "\"" + wanted.texts.front() + "\"");
    return fail("{} does not say which token ends a text. Name it, by its text or its id, in data.separator, or set "
                "data.separator = \"none\".",
                choice.file.string());
}

} // namespace shardscope::data
