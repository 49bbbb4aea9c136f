// SPDX-License-Identifier: Apache-2.0
// Which files a run's tokens come from. For core/data's own files.
#pragma once

#include "core/base/result.h"
#include "core/data/token_store.h"

#include <filesystem>
#include <string>
#include <vector>

namespace shardscope::data {

struct SourceFiles
{
    std::vector<TokenFile> files;
    TokenWidth width = TokenWidth::Byte; ///< Byte: text
    int64_t totalBytes = 0;
    std::string name;    ///< "file /x/y.txt", "folder /x", "default corpus": what the log calls it
    std::string remarks; ///< "; left out: 3 binary files, 1 empty file", or nothing
};

/// A text file, a folder of text files (recursive, sorted by relative path, hidden and binary files left out) or a
/// .bin (tokenBytes and vocabulary as openBinFile() takes them).
Result<SourceFiles> sourcesOf(const std::filesystem::path &path, int64_t tokenBytes, int64_t vocabulary);

/// Licence texts, then Python's and Perl's own sources, in a fixed order, until limitBytes are reached.
Result<SourceFiles> defaultCorpus(const std::filesystem::path &systemRoot, int64_t limitBytes = 32 << 20);

} // namespace shardscope::data
