// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face folder: read to a model's shape and written from one. Families: llama, mistral, qwen2
// and qwen3, as transformers 5 reads them (fields of older versions too). What a decoder here can't be is refused by
// name.
#pragma once

#include "core/base/result.h"
#include "core/shapes/model_shape.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::shapes {

/// "llama", "mistral", "qwen2", "qwen3".
std::string_view toText(ModelFamily family);
std::string_view toText(RopeScaling::Kind kind);

struct HfConfig
{
    ModelShape shape;
    /// tie_word_embeddings; empty where config.json doesn't say (the shape is then untied, as transformers reads it).
    std::optional<bool> tied;
    std::vector<std::string> warnings; ///< fields that have no effect here
};

/// `where` names the file in messages. All problems are listed at once.
Result<HfConfig> parseHfConfig(std::string_view json, std::string_view where);
/// config.json of that folder; the shape's name is the folder's.
Result<HfConfig> readHfConfig(const std::filesystem::path &folder);

/// config.json for a model of that shape whose weights are stored in `dtype` ("float32", "bfloat16"). `original`: the
/// config.json that it came from, whose other fields (tokens' ids, initializer) are kept; or empty.
Result<std::string> hfConfigText(const ModelShape &shape, std::string_view dtype, std::string_view original = {});

} // namespace shardscope::shapes
