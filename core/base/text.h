// SPDX-License-Identifier: Apache-2.0
// Numbers as a user reads them. One formatter for the window, the command line and the reports; always the C locale.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shardscope {

/// "512 B", "23.4 KiB", "1.27 GiB": binary units, three significant digits.
std::string formatBytes(int64_t bytes);
/// "850 ns", "12.4 µs", "1.04 s", "3 min 20 s", "2 h 05 min".
std::string formatDuration(int64_t nanoseconds);
/// "999", "18.2 k", "1.36 B": decimal, three significant digits.
std::string formatCount(double count);
/// Shortest text that reads back as the same double.
std::string formatDouble(double value);
/// The candidate with the smallest edit distance to word, if it is close enough to be a slip of the keyboard.
std::optional<std::string> nearestName(std::string_view word, std::span<const std::string> candidates);

} // namespace shardscope
