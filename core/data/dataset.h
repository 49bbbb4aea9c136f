// SPDX-License-Identifier: Apache-2.0
// The tokens of a run: a text file, a folder of text files, a .bin of uint16 tokens, or this machine's own texts.
// Files are mapped, so ranks of one machine share one copy. Everything is checked when it is opened.
#pragma once

#include "core/base/result.h"
#include "core/data/token_store.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace shardscope::data {

struct DatasetOptions
{
    std::filesystem::path path;    ///< empty: the default corpus of this machine
    double validationShare = 0.01; ///< of the tokens, taken from the tail
    int64_t sequenceLength = 256;
    int64_t vocabulary = 32000; ///< ids must be smaller
    int64_t seed = 0;
    std::filesystem::path systemRoot = "/"; ///< where the default corpus is looked for
};

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

private:
    Dataset() = default;

    TokenStore m_store;
    int64_t m_sequenceLength = 0;
    int64_t m_seed = 0;
    int64_t m_trainingWindows = 0;
    int64_t m_validationWindows = 0;
    Fingerprint m_fingerprint;
    std::string m_description;
};

} // namespace shardscope::data
