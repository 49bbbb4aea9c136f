// SPDX-License-Identifier: Apache-2.0
// Which tokenizer a run's texts go through, and what stands between two documents: what can be told without opening it.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::data {

enum class TokenizerKind {
    Bytes,         ///< bytes are tokens
    SentencePiece, ///< a .model
    Json           ///< a tokenizer.json of Hugging Face's
};

/// The token between two documents, as far as it is known before a tokenizer is opened.
struct SeparatorChoice
{
    bool none = false;
    /// Texts of tokens, best first. Where a user named one it is alone.
    std::vector<std::string> texts;
    std::optional<int64_t> id; ///< where none of the texts is a token
    bool asked = false;        ///< the user's own: must be a token of the tokenizer
};

struct TokenizerChoice
{
    TokenizerKind kind = TokenizerKind::Bytes;
    std::filesystem::path file; ///< empty: Bytes
    SeparatorChoice separator;
    /// "bytes", "/models/llama/tokenizer.json"
    std::string name() const;
};

/// tokenizer is the key data.tokenizer: "bytes", a file, or a folder with a tokenizer.json or tokenizer.model in it.
/// Empty: what modelFolder (may be empty) has of those, else bytes. separator is data.separator: "auto", "none", the
/// text of a token, or its id.
Result<TokenizerChoice> chooseTokenizer(const std::string &tokenizer, const std::string &separator,
                                        const std::filesystem::path &modelFolder);

} // namespace shardscope::data
