// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/run_configuration.h"
#include "core/data/data_progress.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardscope::data {

/// Below this user's cache directory.
inline constexpr const char *kCacheFolder = "tokens";
/// What data.tokenizer is where bytes are tokens, whatever else there is.
inline constexpr const char *kBytesTokenizer = "bytes";

struct DatasetOptions
{
    std::filesystem::path path;    ///< empty: the default corpus of this machine
    double validationShare = 0.01; ///< of the tokens, taken from the tail
    int64_t sequenceLength = 256;
    int64_t vocabulary = 32000; ///< ids must be smaller
    int64_t seed = 0;
    int64_t globalBatch = 0;           ///< sequences of a step: fewer training sequences are refused; 0: not looked at
    std::string tokenizer;             ///< data.tokenizer; see chooseTokenizer()
    std::string separator;             ///< data.separator
    int64_t tokenBytes = 0;            ///< of a .bin: 2, 4 or 0 (by its header, else by the vocabulary)
    std::filesystem::path modelFolder; ///< whose own tokenizer serves where none is named; may be empty
    std::filesystem::path cacheFolder; ///< where tokens that are made from texts are kept
    ProgressFunction progress;         ///< may be empty
    std::filesystem::path systemRoot = "/"; ///< where the default corpus is looked for
};

/// Those of a run whose batches are resolved. cacheFolder is run::cacheDirectory() / kCacheFolder.
DatasetOptions optionsOf(const config::RunConfiguration &configuration, int64_t vocabulary,
                         const std::filesystem::path &cacheFolder);

} // namespace shardscope::data
