// SPDX-License-Identifier: Apache-2.0
#include "core/data/utf8.h"

#include <cstddef>

namespace shardscope::data {

/// Bytes of the well-formed character at the beginning of text, which is not empty; 0 where there is none.
static size_t characterBytes(std::string_view text)
{
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto follows = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
    const unsigned first = byte(0);
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return follows(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        const bool overlong = first == 0xE0 && byte(1) < 0xA0;
        const bool surrogate = first == 0xED && byte(1) > 0x9F;
        return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        const bool overlong = first == 0xF0 && byte(1) < 0x90;
        const bool tooLarge = first == 0xF4 && byte(1) > 0x8F;
        return follows(1) && follows(2) && follows(3) && !overlong && !tooLarge ? 4 : 0;
    }
    return 0;
}

int64_t malformedBytes(std::string_view text)
{
    int64_t malformed = 0;
    while (!text.empty()) {
        const size_t bytes = characterBytes(text);
        malformed += bytes == 0 ? 1 : 0;
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return malformed;
}

} // namespace shardscope::data
