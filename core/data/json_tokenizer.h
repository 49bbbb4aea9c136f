// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/data/tokenizer.h"

#include <string>
#include <vector>

namespace shardscope::data {

/// Pythons that may have the tokenizers package, best first: $SHARDSCOPE_PYTHON, $SHARDSCOPE_DEPS/venv, the venv that
/// this was built with, python3.
std::vector<std::string> pythons();

/// A tokenizer.json, through Python's tokenizers package in a process of its own (tokenizer_server.py): of the first of
/// these Pythons that has it. For core/data's own files.
Result<std::unique_ptr<Tokenizer>> openJsonTokenizer(const TokenizerChoice &choice,
                                                     const std::vector<std::string> &pythons,
                                                     const CancelFunction &isCancelled);

} // namespace shardscope::data
