// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenised_texts.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/data/text_pieces.h"
#include "core/data/tokenizer.h"
#include "core/data/utf8.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace shardscope::data {

namespace {

/// Changes where the same texts would give other tokens: another way to cut or to pack.
constexpr int64_t kFormat = 1;
constexpr size_t kHashBlockBytes = 1024 * 1024;
constexpr size_t kBatchBytes = 1024 * 1024; ///< goes to the tokenizer at once
constexpr auto kWaitForOther = std::chrono::milliseconds(200);

std::string_view textOf(const TokenStore::Segment &segment)
{
    return {reinterpret_cast<const char *>(segment.bytes.data()), segment.bytes.size()};
}

/// Goes through the documents once, in batches of pieces, and puts their ids one after the other.
class Packer
{
public:
    Packer(const TextSource &texts, Tokenizer &tokenizer, Cut cut, TokenCache::Writer &writer, int64_t vocabulary,
           const ProgressFunction &progress)
        : m_texts(texts)
        , m_tokenizer(tokenizer)
        , m_cut(cut)
        , m_writer(writer)
        , m_vocabulary(vocabulary)
        , m_meter(progress, DataPhase::Tokenising, texts.store.tokens())
    {
    }

    Result<> run();

private:
    struct Part
    {
        size_t document; ///< index of a segment
        bool isFirst;    ///< of its document
    };
    Result<> encodeBatch();
    Result<> checkIds(const Part &part, std::span<const uint32_t> ids) const;

    const TextSource &m_texts;
    Tokenizer &m_tokenizer;
    const Cut m_cut;
    TokenCache::Writer &m_writer;
    const int64_t m_vocabulary;
    ProgressMeter m_meter;
    std::vector<std::string_view> m_pieces;
    std::vector<Part> m_parts; ///< of each piece
    size_t m_batchBytes = 0;
    int64_t m_documentStart = 0; ///< number of its first token
};

Result<> Packer::run()
{
    const auto &documents = m_texts.store.segments();
    for (size_t document = 0; document < documents.size(); ++document) {
        const std::string_view text = textOf(documents[document]);
        for (size_t offset = 0; offset < text.size();) {
            const Piece piece = pieceAt(text, offset, m_cut);
            m_pieces.push_back(piece.text);
            m_parts.push_back({document, offset == 0});
            m_batchBytes += piece.text.size();
            offset = piece.nextOffset;
            if (m_batchBytes < kBatchBytes)
                continue;
            if (auto encoded = encodeBatch(); !encoded)
                return encoded;
        }
    }
    return encodeBatch();
}

Result<> Packer::encodeBatch()
{
    // A tokenizer that takes long is asked again and again: the meter decides how often the user's function is.
    const auto isCancelled = [this] { return !m_meter.add(0); };
    const auto encoded = m_tokenizer.encode(m_pieces, isCancelled);
    if (auto told = m_meter.add(static_cast<int64_t>(std::exchange(m_batchBytes, 0))); !told)
        return told;
    if (!encoded)
        return tl::unexpected(encoded.error());
    for (size_t i = 0; i < encoded->size(); ++i) {
        const auto separator = m_tokenizer.separator();
        if (separator && m_parts[i].isFirst && m_parts[i].document > 0) {
            if (auto added = m_writer.add(std::span(&*separator, 1)); !added)
                return added;
        }
        if (m_parts[i].isFirst)
            m_documentStart = m_writer.tokens();
        m_writer.addMalformed(malformedBytes(m_pieces[i]));
        auto added = checkIds(m_parts[i], (*encoded)[i]).and_then([&] { return m_writer.add((*encoded)[i]); });
        if (!added)
            return added;
    }
    m_pieces.clear();
    m_parts.clear();
    return {};
}

Result<> Packer::checkIds(const Part &part, std::span<const uint32_t> ids) const
{
    const auto beyond = std::ranges::find_if(ids, [this](uint32_t id) { return id >= m_vocabulary; });
    if (beyond == ids.end())
        return {};
    const auto &file = m_texts.sources.files[m_texts.store.segments()[part.document].file];
    return fail("{}: the token at position {} has id {}, and the model's vocabulary ends at {}. {} has {} ids: use the "
                "tokenizer that was made for this model, or a model with a larger vocabulary.",
                file.path.string(), m_writer.tokens() + (beyond - ids.begin()) - m_documentStart, *beyond,
                m_vocabulary - 1, m_texts.tokenizer.name(), m_tokenizer.vocabulary());
}

Result<> build(const TextSource &texts, TokenCache::Writer &writer, Tokenizer &tokenizer, int64_t vocabulary,
               const ProgressFunction &progress)
{
    if (const auto separator = tokenizer.separator(); separator && *separator >= vocabulary)
        return fail("The separator of {} has id {}, and the model's vocabulary ends at {}. Name another token in "
                    "data.separator, or set data.separator = \"none\".",
                    texts.tokenizer.name(), *separator, vocabulary - 1);
    const auto cut = cutFor(tokenizer);
    if (!cut)
        return tl::unexpected(cut.error());
    return Packer(texts, tokenizer, *cut, writer, vocabulary, progress).run().and_then([&]() -> Result<> {
        if (writer.tokens() == 0)
            return fail("{} makes no tokens of {}.", texts.tokenizer.name(), texts.sources.name);
        return writer.commit();
    });
}

Result<> waitForOther(const ProgressFunction &progress, int64_t sinceNs)
{
    if (progress && !progress({.phase = DataPhase::Waiting, .elapsedNs = monotonicNs() - sinceNs}))
        return fail("{}", kCancelled);
    std::this_thread::sleep_for(kWaitForOther);
    return {};
}

} // namespace

Result<CacheKey> cacheKeyOf(const TextSource &texts, const ProgressFunction &progress)
{
    const auto tokenizer = readTextFile(texts.tokenizer.file);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    const SeparatorChoice &separator = texts.tokenizer.separator;
    Xxh3 hash;
    hash.add(kFormat);
    hash.add(static_cast<int64_t>(texts.tokenizer.kind));
    hash.add(std::string_view(*tokenizer));
    hash.add(static_cast<int64_t>(separator.none));
    hash.add(separator.id.value_or(-1));
    for (const std::string &text : separator.texts)
        hash.add(std::string_view(text));
    hash.add(int64_t{-1}); // here the texts begin
    ProgressMeter meter(progress, DataPhase::Reading, texts.store.tokens());
    for (const TokenStore::Segment &segment : texts.store.segments()) {
        hash.add(std::ssize(segment.bytes));
        for (size_t offset = 0; offset < segment.bytes.size(); offset += kHashBlockBytes) {
            const auto block = segment.bytes.subspan(offset, std::min(kHashBlockBytes, segment.bytes.size() - offset));
            hash.add(block);
            if (auto told = meter.add(std::ssize(block)); !told)
                return tl::unexpected(told.error());
        }
    }
    return hash.digest128();
}

Result<BinFile> tokenise(const TextSource &texts, const TokenCache &cache, int64_t vocabulary,
                         const ProgressFunction &progress)
{
    const int64_t startNs = monotonicNs();
    std::unique_ptr<Tokenizer> tokenizer;
    for (;;) {
        if (auto found = cache.find())
            return std::move(*found);
        if (!tokenizer) {
            auto opened = openTokenizer(texts.tokenizer, [&] {
                return progress && !progress({.phase = DataPhase::Tokenising,
                                              .totalBytes = texts.store.tokens(),
                                              .elapsedNs = monotonicNs() - startNs});
            });
            if (!opened)
                return tl::unexpected(opened.error());
            tokenizer = std::move(*opened);
        }
        auto writer = cache.tryWrite(tokenizer->vocabulary() > 65536 ? TokenWidth::Uint32 : TokenWidth::Uint16);
        if (!writer)
            return tl::unexpected(writer.error());
        if (!*writer) {
            if (auto waited = waitForOther(progress, startNs); !waited)
                return tl::unexpected(waited.error());
            continue;
        }
        if (cache.find()) // made by another process between the two looks
            continue;
        if (auto built = build(texts, **writer, *tokenizer, vocabulary, progress); !built)
            return tl::unexpected(built.error());
        if (auto found = cache.find())
            return std::move(*found);
        return fail("{} was removed as soon as it was written.", cache.file().string());
    }
}

} // namespace shardscope::data
