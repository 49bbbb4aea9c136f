// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset.h"

#include "core/base/text.h"
#include "core/data/permutation.h"
#include "core/data/token_source.h"

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

/// Where there is less than one sequence, or than one step.
static Result<> checkAmount(const TokenSource &tokens, const DatasetOptions &options, int64_t trainingWindows)
{
    if (trainingWindows < 1)
        return fail(
            "There are only {} tokens in {}, fewer than one sequence needs ({} + 1). Give more text or set a smaller "
            "train.sequence_length.",
            tokens.store.tokens(), tokens.name, options.sequenceLength);
    if (trainingWindows < options.globalBatch)
        return fail("There are only {} sequences of {} tokens to train on in {}, fewer than one step takes: "
                    "train.global_batch = "
                    "{} (ranks × micro_batch × accumulation). Give more text, or set a smaller train.global_batch or "
                    "train.sequence_length.",
                    trainingWindows, options.sequenceLength, tokens.name, options.globalBatch);
    return {};
}

/// What no token ever reaches is kept, gathered and multiplied with all the same.
static std::string adviceOn(const TokenSource &tokens, int64_t vocabulary)
{
    constexpr int64_t kBytes = 256, kFarLarger = 4;
    if (tokens.store.width() != TokenWidth::Byte || vocabulary <= kFarLarger * kBytes)
        return {};
    return fmt::format(
        "Bytes are tokens here: {} of the {} ids of the model's vocabulary. The rest of its embedding and "
        "head takes memory and time for nothing. Name a tokenizer of about that size in data.tokenizer, "
        "or take a model with a smaller vocabulary.",
        kBytes, vocabulary);
}

Result<Dataset> Dataset::open(const DatasetOptions &options)
{
    auto tokens = openTokens(options);
    if (!tokens)
        return tl::unexpected(tokens.error());
    // A window is a sequence and the token after it; two neighbours share that token.
    const int64_t windows = (tokens->store.tokens() - 1) / options.sequenceLength;
    Dataset dataset;
    dataset.m_sequenceLength = options.sequenceLength;
    dataset.m_seed = options.seed;
    dataset.m_validationWindows = heldOutWindows(windows, options.validationShare);
    dataset.m_trainingWindows = windows - dataset.m_validationWindows;
    if (auto enough = checkAmount(*tokens, options, dataset.m_trainingWindows); !enough)
        return tl::unexpected(enough.error());
    dataset.m_fingerprint = {tokens->sizeBytes, fmt::format("{:016x}", tokens->xxh3)};
    const std::string heldOut =
        dataset.m_validationWindows
            ? fmt::format(", {} of them held out",
                          formatCount(static_cast<double>(dataset.m_validationWindows * options.sequenceLength)))
            : "";
    dataset.m_description =
        fmt::format("{}: {} tokens ({}){}{}.", tokens->name, formatCount(static_cast<double>(tokens->store.tokens())),
                    tokens->kind, heldOut, tokens->remarks);
    dataset.m_advice = adviceOn(*tokens, options.vocabulary);
    dataset.m_store = std::move(tokens->store);
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

Result<std::string> describeData(const DatasetOptions &options)
{
    auto texts = textsToTokenise(options);
    if (!texts)
        return tl::unexpected(texts.error());
    if (*texts)
        return std::move(**texts);
    return Dataset::open(options).map([](const Dataset &dataset) {
        return dataset.advice().empty() ? dataset.description() : dataset.description() + "\n" + dataset.advice();
    });
}

} // namespace shardscope::data
