// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset_options.h"

namespace shardscope::data {

DatasetOptions optionsOf(const config::RunConfiguration &configuration, int64_t vocabulary,
                         const std::filesystem::path &cacheFolder)
{
    DatasetOptions options;
    options.path = configuration.data.path;
    options.validationShare = configuration.data.validation;
    options.sequenceLength = configuration.train.sequenceLength;
    options.vocabulary = vocabulary;
    options.seed = configuration.train.seed;
    options.globalBatch = configuration.train.globalBatch;
    options.tokenizer = configuration.data.tokenizer;
    options.separator = configuration.data.separator;
    options.tokenBytes = configuration.data.tokenBytes;
    options.cacheFolder = cacheFolder;
    return options;
}

} // namespace shardscope::data
