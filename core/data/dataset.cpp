// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset.h"

#include "core/base/text.h"
#include "core/data/permutation.h"
#include "core/data/source_files.h"
#include "core/data/token_scan.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace shardscope::data {

/// How many tokens of the tail are held out: the share, in whole sequences, at least one, and one stays for training.
static int64_t heldOutWindows(int64_t windows, double share)
{
    if (share <= 0 || windows < 2)
        return 0;
    const auto wanted = static_cast<int64_t>(std::llround(static_cast<double>(windows) * share));
    return std::clamp<int64_t>(wanted, 1, windows - 1);
}

Result<Dataset> Dataset::open(const DatasetOptions &options)
{
    auto sources = options.path.empty() ? defaultCorpus(options.systemRoot) : sourcesOf(options.path);
    if (!sources)
        return tl::unexpected(sources.error());
    auto store = TokenStore::open(sources->files, sources->width);
    if (!store)
        return tl::unexpected(store.error());

    // A window is a sequence and the token after it; two neighbours share that token.
    const int64_t windows = (store->tokens() - 1) / options.sequenceLength;
    if (windows < 1)
        return fail("The {} has {} tokens, fewer than one sequence needs ({} + 1). Give more text or set a smaller "
                    "train.sequence_length.",
                    sources->name, store->tokens(), options.sequenceLength);
    const auto scan = scanTokens(*store, sources->files, options.vocabulary);
    if (!scan)
        return tl::unexpected(scan.error());

    Dataset dataset;
    dataset.m_sequenceLength = options.sequenceLength;
    dataset.m_seed = options.seed;
    dataset.m_validationWindows = heldOutWindows(windows, options.validationShare);
    dataset.m_trainingWindows = windows - dataset.m_validationWindows;
    dataset.m_fingerprint = {sources->totalBytes, *scan};
    const std::string heldOut =
        dataset.m_validationWindows
            ? fmt::format(", {} of them held out",
                          formatCount(static_cast<double>(dataset.m_validationWindows * options.sequenceLength)))
            : "";
    dataset.m_description =
        fmt::format("{}: {} tokens ({}){}{}.", sources->name, formatCount(static_cast<double>(store->tokens())),
                    sources->width == TokenWidth::Byte ? "bytes" : "uint16", heldOut, sources->remarks);
    dataset.m_store = std::move(*store);
    return dataset;
}

void Dataset::sample(int64_t globalSampleIndex, std::span<int64_t> tokens) const
{
    assert(globalSampleIndex >= 0 && static_cast<int64_t>(tokens.size()) == m_sequenceLength + 1);
    const auto index = static_cast<uint64_t>(globalSampleIndex);
    const auto windows = static_cast<uint64_t>(m_trainingWindows);
    const Permutation order(windows, static_cast<uint64_t>(m_seed), index / windows);
    m_store.read(static_cast<int64_t>(order(index % windows)) * m_sequenceLength, tokens);
}

void Dataset::validationSample(int64_t index, std::span<int64_t> tokens) const
{
    assert(index >= 0 && index < m_validationWindows && static_cast<int64_t>(tokens.size()) == m_sequenceLength + 1);
    m_store.read((m_trainingWindows + index) * m_sequenceLength, tokens);
}

} // namespace shardscope::data
