// SPDX-License-Identifier: Apache-2.0
// The tokens of a run: text (a file, a folder, this machine's own), as bytes or through a tokenizer, or a .bin of
// tokens. Files are mapped, so ranks of one machine share one copy. Everything is checked when it is opened.
#pragma once

#include "core/base/result.h"
#include "core/data/dataset_options.h"
#include "core/data/token_store.h"

#include <cstdint>
#include <span>
#include <string>

namespace shardscope::data {

/// Two equal fingerprints: the same tokens in the same order.
struct Fingerprint
{
    int64_t sizeBytes = 0;
    std::string xxh3; ///< 16 hexadecimal digits
    bool operator==(const Fingerprint &) const = default;
};

class Dataset
{
public:
    /// Texts that need a tokenizer are tokenised first, or found in options.cacheFolder: options.progress is told.
    static Result<Dataset> open(const DatasetOptions &options);

    /// A training sample: sequenceLength + 1 tokens (inputs are all but the last, targets all but the first). A
    /// function of (seed, globalSampleIndex) alone; each epoch visits every window once, in an order of its own.
    void sample(int64_t globalSampleIndex, std::span<int64_t> tokens) const;
    /// Held-out sample index, in order; index < validationWindows().
    void validationSample(int64_t index, std::span<int64_t> tokens) const;

    int64_t trainingWindows() const { return m_trainingWindows; }     ///< samples of an epoch, at least 1
    int64_t validationWindows() const { return m_validationWindows; } ///< 0: nothing is held out
    int64_t tokens() const { return m_store.tokens(); }
    int64_t sequenceLength() const { return m_sequenceLength; }
    const Fingerprint &fingerprint() const { return m_fingerprint; }
    /// A sentence for the log: what, how much, what was left out.
    const std::string &description() const { return m_description; }
    /// Sentences on bytes that use little of the model's vocabulary; empty where there is nothing to say.
    const std::string &advice() const { return m_advice; }

private:
    Dataset() = default;

    TokenStore m_store;
    int64_t m_sequenceLength = 0;
    int64_t m_seed = 0;
    int64_t m_trainingWindows = 0;
    int64_t m_validationWindows = 0;
    Fingerprint m_fingerprint;
    std::string m_description;
    std::string m_advice;
};

/// A sentence on what the options name (and the advice, where there is one), or what is wrong with it. Other than
/// open(), it tokenises nothing: where that is still to be done it says so, and has looked whether tokenizer and text
/// are there.
Result<std::string> describeData(const DatasetOptions &options);

} // namespace shardscope::data
