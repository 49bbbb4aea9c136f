// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/data/tokenizer_choice.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace shardscope::data {

/// Asked now and then while a tokenizer works: true where it should give up.
using CancelFunction = std::function<bool()>;

/// Text to ids. For core/data's own files.
class Tokenizer
{
public:
    virtual ~Tokenizer() = default;

    /// Ids are below this.
    virtual int64_t vocabulary() const = 0;
    /// The token between two documents; nothing where there is to be none.
    virtual std::optional<uint32_t> separator() const = 0;
    /// The ids of every piece by itself, without tokens that begin or end a text. Bytes that are no UTF-8 count as
    /// U+FFFD.
    virtual Result<std::vector<std::vector<uint32_t>>> encode(std::span<const std::string_view> pieces,
                                                              const CancelFunction &isCancelled) = 0;
};

/// Opens a SentencePiece model or a tokenizer.json. Messages say what is missing, and how to install it.
Result<std::unique_ptr<Tokenizer>> openTokenizer(const TokenizerChoice &choice, const CancelFunction &isCancelled = {});

/// The separator that a tokenizer must have and has not.
tl::unexpected<Error> noSeparator(const TokenizerChoice &choice);

} // namespace shardscope::data
