// SPDX-License-Identifier: Apache-2.0
// Tokens that were written with one width and are read with another. For core/data's own files.
#pragma once

#include "core/data/token_store.h"

#include <optional>
#include <span>
#include <string>

namespace shardscope::data {

/// A sentence where the tokens can't be of this width: every second value is zero, as it is where wider numbers are
/// taken for two. Nothing for text, and for fewer than 16 tokens.
std::optional<std::string> wrongWidth(std::span<const std::byte> bytes, TokenWidth width);

/// For tokens of which some are beyond the vocabulary: what to set, where the other width would explain it.
std::optional<std::string> remedyFor(std::span<const std::byte> bytes, TokenWidth width, int64_t vocabulary);

} // namespace shardscope::data
