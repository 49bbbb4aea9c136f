// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_source.h"

#include "core/base/text.h"
#include "core/data/source_files.h"
#include "core/data/token_cache.h"
#include "core/data/token_scan.h"
#include "core/data/tokenised_texts.h"
#include "core/data/tokenizer.h"

namespace shardscope::data {

namespace {

/// What was asked for, before a token is looked at.
struct Asked
{
    SourceFiles sources;
    TokenizerChoice tokenizer;
    bool isText() const { return sources.width == TokenWidth::Byte; }
    bool isTokenised() const { return isText() && tokenizer.kind != TokenizerKind::Bytes; }
};

Result<Asked> whatIsAsked(const DatasetOptions &options)
{
    auto sources = options.path.empty() ? defaultCorpus(options.systemRoot)
                                        : sourcesOf(options.path, options.tokenBytes, options.vocabulary);
    if (!sources)
        return tl::unexpected(sources.error());
    auto tokenizer = chooseTokenizer(options.tokenizer, options.separator, options.modelFolder);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    Asked asked{std::move(*sources), std::move(*tokenizer)};
    if (!asked.isText() && !options.tokenizer.empty())
        asked.sources.remarks += "; data.tokenizer is not needed: these are tokens already";
    if (asked.isText() && options.tokenBytes != 0)
        asked.sources.remarks += "; data.token_bytes is not needed: this is text";
    return asked;
}

Result<TokenSource> openBytes(const Asked &asked, const DatasetOptions &options)
{
    const std::optional<int64_t> separator =
        asked.isText() && !asked.tokenizer.separator.none ? asked.tokenizer.separator.id : std::nullopt;
    if (separator && asked.sources.files.size() > 1 && *separator >= options.vocabulary)
        return fail("The separator between texts has id {}, and the model's vocabulary ends at {}. Set data.separator.",
                    *separator, options.vocabulary - 1);
    auto store = TokenStore::open(asked.sources.files, asked.sources.width,
                                  separator ? std::optional(static_cast<uint8_t>(*separator)) : std::nullopt);
    if (!store)
        return tl::unexpected(store.error());
    const auto hash = scanTokens(*store, asked.sources.files, options.vocabulary, options.progress);
    if (!hash)
        return tl::unexpected(hash.error());
    const char *kind = asked.isText() ? "bytes" : asked.sources.width == TokenWidth::Uint16 ? "uint16" : "uint32";
    return TokenSource{std::move(*store),     asked.sources.name,       kind,
                       asked.sources.remarks, asked.sources.totalBytes, hash->xxh3};
}

/// A cache whose tokens are those of its header. Nothing: it is broken.
Result<std::optional<TokenSource>> openCache(const Asked &asked, const BinFile &cache, const DatasetOptions &options)
{
    auto store = TokenStore::open({cache.file}, cache.width);
    if (!store)
        return tl::unexpected(store.error());
    // First whether the cache is whole: an id that a broken one holds is not the user's mistake.
    const auto scan = scanTokens(*store, {cache.file}, kAnyVocabulary, options.progress);
    if (!scan)
        return tl::unexpected(scan.error());
    if (scan->xxh3 != cache.header->cache->xxh3)
        return std::nullopt;
    if (scan->largest >= options.vocabulary) {
        const auto beyond = scanTokens(*store, {cache.file}, options.vocabulary, {});
        return fail("{} by {}: {}", asked.sources.name, asked.tokenizer.name(), beyond.error().text);
    }
    TokenSource source{std::move(*store),     asked.sources.name,       "by " + asked.tokenizer.name(),
                       asked.sources.remarks, asked.sources.totalBytes, scan->xxh3};
    if (const int64_t malformed = cache.header->cache->malformedBytes)
        source.remarks +=
            fmt::format("; {} that {} no UTF-8 became U+FFFD",
                        malformed == 1 ? "1 byte" : fmt::format("{} bytes", malformed), malformed == 1 ? "is" : "are");
    return source;
}

Result<TokenSource> openTokenised(const Asked &asked, const DatasetOptions &options)
{
    const auto texts = TokenStore::open(asked.sources.files, TokenWidth::Byte);
    if (!texts)
        return tl::unexpected(texts.error());
    const TextSource source{asked.sources, *texts, asked.tokenizer};
    const auto key = cacheKeyOf(source, options.progress);
    if (!key)
        return tl::unexpected(key.error());
    const TokenCache cache(options.cacheFolder, *key);
    std::string repaired;
    const auto noteRepair = [&] {
        repaired = fmt::format("; {} was damaged and was made anew", cache.file().string());
    };
    for (int attempt = 0; attempt < 2; ++attempt) {
        std::error_code error;
        if (!cache.find() && std::filesystem::exists(cache.file(), error))
            noteRepair();
        const auto made = tokenise(source, cache, options.vocabulary, options.progress);
        if (!made)
            return tl::unexpected(made.error());
        auto opened = openCache(asked, *made, options);
        if (!opened)
            return tl::unexpected(opened.error());
        if (*opened) {
            (*opened)->remarks += repaired;
            return std::move(**opened);
        }
        cache.remove();
        noteRepair();
    }
    return fail("{} reads differently from what was written to it. Name a folder on another disk in XDG_CACHE_HOME.",
                cache.file().string());
}

} // namespace

Result<TokenSource> openTokens(const DatasetOptions &options)
{
    const auto asked = whatIsAsked(options);
    if (!asked)
        return tl::unexpected(asked.error());
    return asked->isTokenised() ? openTokenised(*asked, options) : openBytes(*asked, options);
}

Result<std::optional<std::string>> textsToTokenise(const DatasetOptions &options)
{
    const auto asked = whatIsAsked(options);
    if (!asked)
        return tl::unexpected(asked.error());
    if (!asked->isTokenised())
        return std::nullopt;
    const auto texts = TokenStore::open(asked->sources.files, TokenWidth::Byte);
    if (!texts)
        return tl::unexpected(texts.error());
    const auto key = cacheKeyOf({asked->sources, *texts, asked->tokenizer}, options.progress);
    if (!key)
        return tl::unexpected(key.error());
    if (TokenCache(options.cacheFolder, *key).find())
        return std::nullopt;
    if (auto tokenizer = openTokenizer(asked->tokenizer); !tokenizer)
        return tl::unexpected(tokenizer.error());
    return fmt::format("{}: {} of text, tokenised by {} at the start{}.", asked->sources.name,
                       formatBytes(asked->sources.totalBytes), asked->tokenizer.name(), asked->sources.remarks);
}

} // namespace shardscope::data
