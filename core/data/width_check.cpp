// SPDX-License-Identifier: Apache-2.0
#include "core/data/width_check.h"

#include <algorithm>
#include <fmt/format.h>

namespace shardscope::data {

namespace {

constexpr size_t kFewest = 16;

/// The largest of every step-th value, from the first-th on.
int64_t largestOfEvery(std::span<const std::byte> bytes, TokenWidth width, size_t first, size_t step)
{
    const size_t count = bytes.size() / static_cast<size_t>(width);
    int64_t largest = 0;
    for (size_t i = first; i < count; i += step)
        largest = std::max(largest, tokenAt(bytes.data(), i, width));
    return largest;
}

bool isEverySecondZero(std::span<const std::byte> bytes, TokenWidth width)
{
    const size_t count = bytes.size() / static_cast<size_t>(width);
    if (count < kFewest || count % 2 != 0)
        return false;
    // Nearly all files are told by their beginning; only one that looks wrong is gone through.
    if (largestOfEvery(bytes.first(kFewest * static_cast<size_t>(width)), width, 1, 2) > 0)
        return false;
    return largestOfEvery(bytes, width, 1, 2) == 0 && largestOfEvery(bytes, width, 0, 2) > 0;
}

} // namespace

std::optional<std::string> wrongWidth(std::span<const std::byte> bytes, TokenWidth width)
{
    if (width == TokenWidth::Byte || !isEverySecondZero(bytes, width))
        return std::nullopt;
    const bool isInt64 = width == TokenWidth::Uint32 || isEverySecondZero(bytes, TokenWidth::Uint32);
    return fmt::format("read as uint{}, every second token has id 0. {}", 8 * static_cast<int>(width),
                       isInt64 ? "So its numbers have 8 bytes (int64): write them anew as uint16 or uint32."
                               : "So its tokens are uint32: set data.token_bytes = 4.");
}

std::optional<std::string> remedyFor(std::span<const std::byte> bytes, TokenWidth width, int64_t vocabulary)
{
    const auto fits = [&](TokenWidth other) {
        return bytes.size() % static_cast<size_t>(other) == 0 && largestOfEvery(bytes, other, 0, 1) < vocabulary;
    };
    if (width == TokenWidth::Uint32 && fits(TokenWidth::Uint16))
        return "Read as uint16 all ids are below it: set data.token_bytes = 2 if that is what they are.";
    if (width == TokenWidth::Uint16 && fits(TokenWidth::Uint32))
        return "Read as uint32 all ids are below it: set data.token_bytes = 4 if that is what they are.";
    if (wrongWidth(bytes, width))
        return *wrongWidth(bytes, width) + " It would have ids beyond the vocabulary all the same.";
    return std::nullopt;
}

} // namespace shardscope::data
