// SPDX-License-Identifier: Apache-2.0
// Values as text, in the C locale whatever the process's is. For core/config's own files.
#pragma once

#include "core/config/registry.h"

namespace shardscope::config {

inline constexpr std::string_view kAutomatic = "auto";

std::string_view trimmed(std::string_view text);
/// Valid UTF-8 without control characters (JSON, TOML and file names can all hold it).
bool isPlainText(std::string_view text);
/// The value that a text means for a key, or nothing where it means none. Ranges are setValue()'s to check.
std::optional<Value> parseValue(const Key &key, std::string_view text);

} // namespace shardscope::config
