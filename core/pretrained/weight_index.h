// SPDX-License-Identifier: Apache-2.0
// Which safetensors files a Hugging Face folder has: model.safetensors, or shards with model.safetensors.index.json.
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::pretrained {

inline constexpr std::string_view kSingleFile = "model.safetensors";
inline constexpr std::string_view kIndexFile = "model.safetensors.index.json";

struct WeightIndex
{
    std::vector<std::string> files; ///< names in the folder; empty: a folder without weights
    /// Of each tensor, an index into files. Empty where one file holds all.
    std::map<std::string, size_t, std::less<>> fileOf;
};

/// model.safetensors where it is there, as transformers prefers it; else the index. A message for an index that can't
/// be believed, for shards without one, and for weights in another format.
Result<WeightIndex> readWeightIndex(const std::filesystem::path &folder);
/// `where` names the file in messages.
Result<WeightIndex> parseWeightIndex(std::string_view json, std::string_view where);

/// "model-00002-of-00005.safetensors"; kSingleFile for one of one.
std::string shardName(size_t number, size_t count);
/// The index file of that assignment.
std::string weightIndexText(const WeightIndex &index, int64_t totalBytes);

} // namespace shardscope::pretrained
