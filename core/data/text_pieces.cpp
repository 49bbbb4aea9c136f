// SPDX-License-Identifier: Apache-2.0
#include "core/data/text_pieces.h"

#include <algorithm>
#include <array>

namespace shardscope::data {

namespace {

constexpr size_t kPieceBytes = 16 * 1024;
constexpr size_t kSearchBytes = 16 * 1024;

bool isBlank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\v';
}

bool isInsideCharacter(char c)
{
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Whether text can be cut there: at is the position of the line feed or space between two words.
bool isPlace(std::string_view text, size_t at, Cut cut)
{
    return text[at] == (cut == Cut::AfterNewline ? '\n' : ' ') && !isBlank(text[at - 1]) && !isBlank(text[at + 1]);
}

} // namespace

Piece pieceAt(std::string_view text, size_t offset, Cut cut)
{
    const size_t left = text.size() - offset;
    if (left <= kPieceBytes + kSearchBytes)
        return {text.substr(offset), text.size()};
    const size_t soonest = offset + kPieceBytes;
    const size_t latest = soonest + kSearchBytes - 1; // below size - 1
    for (size_t at = soonest; at < latest; ++at) {
        if (!isPlace(text, at, cut))
            continue;
        const size_t end = at + (cut == Cut::AfterNewline ? 1 : 0);
        return {text.substr(offset, end - offset), cut == Cut::BeforeSpace ? at : at + 1};
    }
    size_t end = latest;
    while (end > soonest && isInsideCharacter(text[end]))
        --end;
    return {text.substr(offset, end - offset), end};
}

Result<Cut> cutFor(Tokenizer &tokenizer)
{
    struct Trial
    {
        Cut cut;
        std::array<std::string_view, 3> texts; ///< the whole, and its two pieces
    };
    static constexpr std::array<Trial, 3> kTrials = {{{Cut::AfterNewline, {"some\nwords", "some\n", "words"}},
                                                      {Cut::AtSpace, {"some words", "some", "words"}},
                                                      {Cut::BeforeSpace, {"some words", "some", " words"}}}};
    for (const Trial &trial : kTrials) {
        auto ids = tokenizer.encode(trial.texts, {});
        if (!ids)
            return tl::unexpected(ids.error());
        std::vector<uint32_t> joined = (*ids)[1];
        joined.insert(joined.end(), (*ids)[2].begin(), (*ids)[2].end());
        if (joined == (*ids)[0])
            return trial.cut;
    }
    return Cut::AfterNewline;
}

} // namespace shardscope::data
