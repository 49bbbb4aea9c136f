// SPDX-License-Identifier: Apache-2.0
// Texts, and tokenizers that are made from them.
#pragma once

#include "core/data/dataset_options.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::data {

/// All tokens of what the options name. Fails the test where it can't be opened.
std::vector<int64_t> tokensOf(const DatasetOptions &options);
/// Why it can't be opened; "opened" where it can.
std::string messageOf(const DatasetOptions &options);

class TokenizerFixture : public testing::Test
{
protected:
    void SetUp() override;
    void TearDown() override;

    std::filesystem::path write(const std::filesystem::path &name, std::string_view text) const;
    /// Licence texts of this repository, several times: some 100 KiB, so that they go to a tokenizer in pieces.
    static std::string longText();
    /// As SentencePiece's trainer takes them: "--model_type=bpe --vocab_size=400".
    std::filesystem::path sentencePiece(const std::string &name, const std::string &settings) const;
    /// Options with this fixture's own cache.
    DatasetOptions options(const std::filesystem::path &texts, const std::filesystem::path &tokenizer) const;
    /// Names of the files in the cache.
    std::vector<std::string> cached() const;

    std::filesystem::path folder;
};

/// A Python with the tokenizers package; empty where there is none.
std::string pythonWithTokenizers();
/// The words of a JSON list of numbers that the script prints. Fails the test where the script does.
std::vector<int64_t> numbersOfPython(const std::string &script, const std::vector<std::string> &arguments);

} // namespace shardscope::data
