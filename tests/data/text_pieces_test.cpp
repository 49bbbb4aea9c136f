// SPDX-License-Identifier: Apache-2.0
#include "core/data/text_pieces.h"
#include "core/data/utf8.h"
#include "core/data/xxh3.h"

#include <gmock/gmock.h>

using namespace shardscope::data;

namespace {

std::vector<std::string_view> piecesOf(std::string_view text, Cut cut)
{
    std::vector<std::string_view> pieces;
    for (size_t offset = 0; offset < text.size();) {
        const Piece piece = pieceAt(text, offset, cut);
        EXPECT_GT(piece.nextOffset, offset);
        offset = piece.nextOffset;
        pieces.push_back(piece.text);
    }
    return pieces;
}

std::string joined(const std::vector<std::string_view> &pieces, std::string_view between)
{
    std::string text;
    for (const std::string_view piece : pieces)
        text += (text.empty() ? "" : std::string(between)) + std::string(piece);
    return text;
}

std::string words(std::string_view word, size_t bytes)
{
    std::string text;
    while (text.size() < bytes)
        text += word;
    return text;
}

} // namespace

TEST(TextPieces, endWhereWordsDo)
{
    const std::string text = words("some words.\nMore of them  and so on\n", 200'000);
    const auto lines = piecesOf(text, Cut::AfterNewline);
    const auto spaces = piecesOf(text, Cut::AtSpace);
    const auto before = piecesOf(text, Cut::BeforeSpace);
    EXPECT_GT(lines.size(), 6);
    EXPECT_EQ(joined(lines, ""), text);
    EXPECT_EQ(joined(spaces, " "), text);
    EXPECT_EQ(joined(before, ""), text);
    for (size_t i = 0; i + 1 < lines.size(); ++i)
        EXPECT_EQ(lines[i].back(), '\n');
    for (size_t i = 1; i < spaces.size(); ++i) {
        EXPECT_NE(spaces[i].front(), ' '); // never one of two spaces
        EXPECT_NE(spaces[i - 1].back(), ' ');
    }
    for (size_t i = 1; i < before.size(); ++i)
        EXPECT_EQ(before[i].front(), ' ');
}

TEST(TextPieces, neverEndInsideACharacter)
{
    const std::string text = words("三🙂é", 150'000);
    for (const Cut cut : {Cut::AfterNewline, Cut::AtSpace, Cut::BeforeSpace}) {
        const auto pieces = piecesOf(text, cut);
        EXPECT_GT(pieces.size(), 4);
        EXPECT_EQ(joined(pieces, ""), text);
        for (const std::string_view piece : pieces)
            EXPECT_EQ(malformedBytes(piece), 0);
    }
}

TEST(TextPieces, aShortTextIsOnePiece)
{
    EXPECT_EQ(piecesOf("some words\n", Cut::AfterNewline), std::vector<std::string_view>{"some words\n"});
    const std::string zeros(100'000, '\x80'); // no UTF-8 at all
    EXPECT_EQ(joined(piecesOf(zeros, Cut::AtSpace), ""), zeros);
}

TEST(Utf8, countsWhatIsNoCharacter)
{
    EXPECT_EQ(malformedBytes(""), 0);
    EXPECT_EQ(malformedBytes("plain, Grüße, 三, 🙂, \U0010FFFF"), 0);
    EXPECT_EQ(malformedBytes("caf\xE9"), 1);
    EXPECT_EQ(malformedBytes("\xE4\xB8"), 2);         // cut off
    EXPECT_EQ(malformedBytes("\xC0\xAF"), 2);         // overlong
    EXPECT_EQ(malformedBytes("\xED\xA0\x80"), 3);     // a surrogate
    EXPECT_EQ(malformedBytes("\xF4\x90\x80\x80"), 4); // beyond Unicode
    EXPECT_EQ(malformedBytes("a\xFF"
                             "b\x80"),
              2);
}

TEST(Xxh3, textsDoNotRunIntoEachOther)
{
    const auto digest = [](std::initializer_list<std::string_view> texts) {
        Xxh3 hash;
        for (const std::string_view text : texts)
            hash.add(text);
        return hash.digest128();
    };
    EXPECT_EQ(digest({"ab", "c"}), digest({"ab", "c"}));
    EXPECT_NE(digest({"ab", "c"}), digest({"a", "bc"}));
    EXPECT_NE(digest({"ab", "c"}), digest({"abc"}));
}
