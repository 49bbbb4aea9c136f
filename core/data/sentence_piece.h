// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/data/tokenizer.h"

namespace shardscope::data {

/// A .model of SentencePiece's. For core/data's own files.
Result<std::unique_ptr<Tokenizer>> openSentencePiece(const TokenizerChoice &choice);

} // namespace shardscope::data
